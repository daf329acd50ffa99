#ifndef MUSTER_WORKER_SDK_DDP_SINK_H_
#define MUSTER_WORKER_SDK_DDP_SINK_H_

#include <torch/autograd.h>

#include <memory>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <utility>

namespace muster {

// Shared with the identity nodes, which may outlive the wrapper.
struct SinkState {
  std::weak_ptr<c10d::Reducer> reducer;
  bool static_graph = false;
  bool delay_queued = false;  // once per wrapper: in the first backward of a static graph
};

// Outputs pass through this node, so that one that is left out of the loss yields no gradient
// instead of zeros, and so that a static graph's first iteration can reduce at the end of its
// backward.
struct Sink : torch::autograd::Function<Sink> {
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context,
                                                const std::shared_ptr<SinkState>& state,
                                                at::TensorList inputs) {
    context->set_materialize_grads(false);
    context->saved_data["state"] = c10::IValue::make_capsule(c10::make_intrusive<Holder>(state));
    // A clone: changing a view of the loss in place would fail otherwise.
    torch::autograd::variable_list outputs;
    for (const at::Tensor& input : inputs) outputs.push_back(input.clone());
    return outputs;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    auto capsule = context->saved_data["state"].toCapsule();
    const auto& state = static_cast<Holder*>(capsule.get())->state;
    if (state->static_graph && !state->delay_queued) {
      state->delay_queued = true;
      torch::autograd::Engine::get_default_engine().queue_callback([weak = state->reducer] {
        if (const auto reducer = weak.lock()) reducer->delay_all_reduce();
      });
    }
    torch::autograd::variable_list inputs = {at::Tensor()};  // for `state`
    inputs.insert(inputs.end(), gradients.begin(), gradients.end());
    return inputs;
  }

  struct Holder : torch::CustomClassHolder {
    explicit Holder(std::shared_ptr<SinkState> s) : state(std::move(s)) {}
    std::shared_ptr<SinkState> state;
  };
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_DDP_SINK_H_
