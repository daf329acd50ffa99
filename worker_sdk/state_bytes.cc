#include "worker_sdk/state_bytes.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <torch/serialize/archive.h>

#include <sstream>
#include <vector>

#include "worker_sdk/byte_stream.h"
#include "worker_sdk/name_difference.h"

namespace muster {
namespace {

std::string KindOf(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.scalar_type() << " " << tensor.sizes();
  return text.str();
}

// Parameters, then buffers.
template <class F>
void ForEachTensor(const torch::nn::Module& module, F&& visit) {
  for (const auto& item : module.named_parameters(true)) {
    if (item.value().defined()) visit(item.key(), item.value());
  }
  for (const auto& item : module.named_buffers(true)) {
    if (item.value().defined()) visit(item.key(), item.value());
  }
}

torch::serialize::InputArchive Open(std::string_view bytes) {
  torch::serialize::InputArchive archive;
  try {
    archive.load_from(bytes.data(), bytes.size());
  } catch (const std::exception&) {
    throw CheckpointError("it is no optimizer's state");
  }
  return archive;
}

// "2 5": the number of parameters in each group.
std::string GroupsOf(const torch::optim::Optimizer& optimizer) {
  std::ostringstream text;
  for (const auto& group : optimizer.param_groups()) text << group.params().size() << " ";
  return text.str();
}

}  // namespace

std::string ModuleBytes(const torch::nn::Module& module) {
  ByteWriter writer;
  ForEachTensor(module, [&](const std::string& name, const at::Tensor& tensor) {
    const at::Tensor flat = tensor.detach().cpu().contiguous();
    writer.String(name);
    writer.String(KindOf(tensor));
    writer.String({static_cast<const char*>(flat.const_data_ptr()), flat.nbytes()});
  });
  return writer.Take();
}

void CheckModule(const torch::nn::Module& module, std::string_view bytes) {
  std::vector<std::string> saved_names;
  for (ByteReader names(bytes); !names.done();) {
    saved_names.emplace_back(names.String());
    names.String();  // what kind of tensor
    names.String();  // its elements
  }
  std::vector<std::string> own_names;
  ForEachTensor(module,
                [&](const std::string& name, const at::Tensor&) { own_names.push_back(name); });
  const std::string difference = NameDifference(saved_names, own_names);
  if (!difference.empty()) throw CheckpointError(difference);
  ByteReader reader(bytes);
  ForEachTensor(module, [&](const std::string& name, const at::Tensor& tensor) {
    reader.String();
    const std::string saved_kind(reader.String());
    if (saved_kind != KindOf(tensor)) {
      throw CheckpointError(name + " is " + KindOf(tensor) + " in the program, " + saved_kind +
                            " in the checkpoint");
    }
    if (reader.String().size() != tensor.nbytes())
      throw CheckpointError(name + " has a wrong size");
  });
}

void RestoreModule(torch::nn::Module& module, std::string_view bytes) {
  const at::NoGradGuard no_grad;
  ByteReader reader(bytes);
  ForEachTensor(module, [&](const std::string&, const at::Tensor& tensor) {
    reader.String();
    reader.String();
    const std::string_view data = reader.String();
    at::Tensor saved = at::empty(tensor.sizes(), tensor.options().device(at::kCPU));
    std::memcpy(saved.mutable_data_ptr(), data.data(), data.size());
    tensor.detach().copy_(saved);
  });
}

std::string OptimizerBytes(const torch::optim::Optimizer& optimizer) {
  torch::serialize::OutputArchive archive;
  optimizer.save(archive);
  std::ostringstream stream;
  archive.save_to(stream);
  ByteWriter writer;
  writer.String(GroupsOf(optimizer));
  writer.String(stream.str());
  return writer.Take();
}

void CheckOptimizer(const torch::optim::Optimizer& optimizer, std::string_view bytes) {
  ByteReader reader(bytes);
  if (reader.String() != GroupsOf(optimizer)) {
    throw CheckpointError("the optimizer has other groups of parameters than the checkpoint");
  }
  Open(reader.String());
}

void RestoreOptimizer(torch::optim::Optimizer& optimizer, std::string_view bytes) {
  ByteReader reader(bytes);
  reader.String();
  auto archive = Open(reader.String());
  optimizer.load(archive);
}

at::Tensor RandomState(const at::Device& device) {
  at::Generator cpu = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(cpu.mutex());
  at::Tensor state = cpu.get_state();
  if (!device.is_cuda()) return state;
  at::Generator gpu = at::globalContext().defaultGenerator(device);
  const std::lock_guard gpu_lock(gpu.mutex());
  return at::cat({state, gpu.get_state()});
}

void RestoreRandom(const at::Device& device, const at::Tensor& state) {
  at::Generator cpu = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(cpu.mutex());
  const int64_t cpu_size = cpu.get_state().numel();
  cpu.set_state(state.narrow(0, 0, cpu_size).clone());
  if (!device.is_cuda() || state.numel() == cpu_size) return;
  at::Generator gpu = at::globalContext().defaultGenerator(device);
  const std::lock_guard gpu_lock(gpu.mutex());
  gpu.set_state(state.narrow(0, cpu_size, state.numel() - cpu_size).clone());
}

}  // namespace muster
