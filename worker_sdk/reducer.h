#ifndef MUSTER_WORKER_SDK_REDUCER_H_
#define MUSTER_WORKER_SDK_REDUCER_H_

#include <torch/csrc/autograd/engine.h>

#include <functional>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace muster {

struct ReducerSettings {
  std::vector<at::Tensor> parameters;
  std::vector<std::vector<size_t>> buckets;  // indices into parameters
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  std::vector<bool> sparse;  // per parameter
  int64_t bucket_bytes = 0;
  int64_t first_bucket_bytes = 0;
  bool find_unused = false;
  bool gradient_as_bucket_view = false;
  std::unordered_map<size_t, std::string> names;
};

// Reducer's constructor has another number of arguments every few releases. A template, so that the
// forms that this LibTorch does not have are not compiled.
template <class Reducer>
std::shared_ptr<Reducer> MakeReducer(ReducerSettings s) {
  using Tensors = std::vector<at::Tensor>;
  using Buckets = std::vector<std::vector<size_t>>;
  using Group = c10::intrusive_ptr<c10d::ProcessGroup>;
  using Flags = std::vector<bool>;
  using Names = std::unordered_map<size_t, std::string>;
  using Caps = std::vector<int64_t>;
  constexpr bool kForm11 = std::is_constructible_v<Reducer, Tensors, Buckets, Group, Flags, int64_t,
                                                   bool, bool, Names, int64_t, bool, bool>;
  constexpr bool kForm12 = std::is_constructible_v<Reducer, Tensors, Buckets, Group, Flags, int64_t,
                                                   bool, bool, Names, int64_t, bool, bool, Caps>;
  constexpr bool kForm13 =
      std::is_constructible_v<Reducer, Tensors, Buckets, Group, Flags, int64_t, bool, bool, Names,
                              int64_t, bool, bool, Caps, bool>;
  static_assert(kForm11 || kForm12 || kForm13,
                "c10d::Reducer as in LibTorch 2.8 (11 arguments), 2.11 (12) or 2.12 (13)");
  const auto make = [&](auto... more) {
    return std::make_shared<Reducer>(std::move(s.parameters), std::move(s.buckets),
                                     std::move(s.group), std::move(s.sparse), s.bucket_bytes,
                                     s.find_unused, s.gradient_as_bucket_view, std::move(s.names),
                                     s.first_bucket_bytes, false, false, std::move(more)...);
  };
  if constexpr (kForm13) {
    return make(Caps(), false);
  } else if constexpr (kForm12) {
    return make(Caps());
  } else {
    return make();
  }
}

// Within a backward: runs `what` at its end, when Reducer is done. Reducer ends it in a callback
// that another one, in a static graph, may queue; what the third one in a row does comes after
// that.
inline void AfterReducer(std::function<void()> what, int callbacks_before = 2) {
  torch::autograd::Engine::get_default_engine().queue_callback(
      [what = std::move(what), callbacks_before] {
        if (callbacks_before > 0) return AfterReducer(what, callbacks_before - 1);
        what();
      });
}

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_REDUCER_H_
