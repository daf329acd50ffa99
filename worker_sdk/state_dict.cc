#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <errno.h>
#include <fcntl.h>
#include <muster/error.h>
#include <muster/state_dict.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <system_error>

#include "base/unique_fd.h"
#include "base/write_all.h"
#include "worker_sdk/failure.h"
#include "worker_sdk/membership.h"
#include "worker_sdk/pickle.h"
#include "worker_sdk/zip_file.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using Named = std::vector<std::pair<std::string, at::Tensor>>;

constexpr std::pair<at::ScalarType, const char*> kStorages[] = {
    {at::kFloat, "FloatStorage"},
    {at::kDouble, "DoubleStorage"},
    {at::kHalf, "HalfStorage"},
    {at::kBFloat16, "BFloat16Storage"},
    {at::kLong, "LongStorage"},
    {at::kInt, "IntStorage"},
    {at::kShort, "ShortStorage"},
    {at::kChar, "CharStorage"},
    {at::kByte, "ByteStorage"},
    {at::kBool, "BoolStorage"},
    {at::kComplexFloat, "ComplexFloatStorage"},
    {at::kComplexDouble, "ComplexDoubleStorage"},
};

Named TensorsOf(const torch::nn::Module& module) {
  Named all;
  for (const auto& list : {module.named_parameters(true), module.named_buffers(true)}) {
    for (const auto& item : list) {
      if (item.value().defined()) all.emplace_back(item.key(), item.value());
    }
  }
  return all;
}

std::string Why(int error = errno) { return std::generic_category().message(error); }

std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// ── Writing ─────────────────────────────────────────────────────────────────────────────────────

PickledTensor Describe(const std::string& name, const at::Tensor& tensor, size_t index) {
  const auto* storage = std::find_if(std::begin(kStorages), std::end(kStorages), [&](auto& known) {
    return known.first == tensor.scalar_type();
  });
  if (storage == std::end(kStorages) || tensor.layout() != at::kStrided || tensor.is_quantized()) {
    throw CheckpointError(name + " is " + c10::toString(tensor.scalar_type()) + ", " +
                          c10::str(tensor.layout()) + ": Python has no storage class for it");
  }
  PickledTensor pickled{storage->second, std::to_string(index), tensor.numel(), 0, {}, {}};
  pickled.sizes = tensor.sizes().vec();
  pickled.strides.resize(pickled.sizes.size());
  int64_t stride = 1;
  for (size_t i = pickled.sizes.size(); i-- > 0;) {
    pickled.strides[i] = stride;
    stride *= std::max<int64_t>(pickled.sizes[i], 1);
  }
  return pickled;
}

void WriteZip(const Named& tensors, int fd) {
  PickledStateDict pickled;
  for (size_t i = 0; i < tensors.size(); ++i) {
    pickled.emplace_back(tensors[i].first, Describe(tensors[i].first, tensors[i].second, i));
  }
  ZipWriter zip([fd](std::string_view bytes) {
    if (const int error = WriteAll(fd, bytes); error != 0) throw CheckpointError(Why(error));
  });
  zip.Add("archive/data.pkl", Pickle(pickled));
  zip.Add("archive/byteorder", "little");
  // One copy at a time.
  for (size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor& tensor = tensors[i].second;
    const at::Tensor dense = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous();
    zip.Add("archive/data/" + std::to_string(i),
            {static_cast<const char*>(dense.const_data_ptr()), dense.nbytes()});
  }
  zip.Add("archive/version", "3\n");
  zip.Finish();
  if (fsync(fd) != 0) throw CheckpointError(Why());
}

// ── Reading ─────────────────────────────────────────────────────────────────────────────────────

class Archive {
 public:
  explicit Archive(const fs::path& file) : zip_(file) {
    // The outermost folder has any name.
    for (const std::string& name : zip_.Names()) {
      const size_t slash = name.find('/');
      if (slash != std::string::npos && name.substr(slash) == "/data.pkl") {
        folder_ = name.substr(0, slash + 1);
      }
    }
    if (folder_.empty()) throw CheckpointError("it is no file of torch.save: it has no data.pkl");
    const std::string order = folder_ + "byteorder";
    if (zip_.Has(order) && zip_.Read(order) != "little") {
      throw CheckpointError("its numbers are not little-endian");
    }
  }

  Named Tensors(const std::string& entry) {
    Named tensors;
    for (const auto& [name, pickled] : Unpickle(zip_.Read(folder_ + "data.pkl"), entry)) {
      try {
        tensors.emplace_back(name, Load(pickled));
      } catch (const CheckpointError& error) {
        throw CheckpointError(name + ": " + error.what());
      }
    }
    return tensors;
  }

 private:
  at::Tensor Load(const PickledTensor& pickled) {
    const auto* storage =
        std::find_if(std::begin(kStorages), std::end(kStorages),
                     [&](auto& known) { return known.second == pickled.storage; });
    if (storage == std::end(kStorages)) {
      throw CheckpointError("there is no reading of " + pickled.storage);
    }
    const std::string record = folder_ + "data/" + pickled.key;
    const uint64_t size = c10::elementSize(storage->first);
    if (!zip_.Has(record) || pickled.numel < 0 || zip_.SizeOf(record) % size != 0 ||
        zip_.SizeOf(record) / size != static_cast<uint64_t>(pickled.numel)) {
      throw CheckpointError(record + " is missing or of another size");
    }
    RequireWithin(pickled);
    const at::Tensor numbers = at::empty({pickled.numel}, storage->first);
    if (pickled.numel > 0) zip_.Read(record, static_cast<char*>(numbers.mutable_data_ptr()));
    return numbers.as_strided(pickled.sizes, pickled.strides, pickled.offset);
  }

  static void RequireWithin(const PickledTensor& pickled) {
    bool good = pickled.sizes.size() == pickled.strides.size() && pickled.offset >= 0;
    bool empty = false;
    __int128 last = pickled.offset;
    for (size_t i = 0; good && i < pickled.sizes.size(); ++i) {
      good = pickled.sizes[i] >= 0 && pickled.strides[i] >= 0;
      empty = empty || pickled.sizes[i] == 0;
      last += static_cast<__int128>(pickled.sizes[i] - 1) * pickled.strides[i];
    }
    if (good && (empty || last < pickled.numel)) return;
    throw CheckpointError("its shape does not fit into its " + std::to_string(pickled.numel) +
                          " numbers");
  }

  ZipReader zip_;
  std::string folder_;
};

StateDictReport Differences(const Named& own, const std::map<std::string, at::Tensor>& saved) {
  StateDictReport report;
  std::map<std::string, bool> known;
  for (const auto& [name, tensor] : own) {
    known[name] = true;
    if (saved.count(name) == 0) report.missing.push_back(name);
  }
  for (const auto& [name, tensor] : saved) {
    if (known.count(name) == 0) report.unexpected.push_back(name);
  }
  return report;
}

}  // namespace

void save_state_dict(const torch::nn::Module& module, const fs::path& file) {
  const fs::path temporary = file.string() + ".tmp";
  const auto fail = [&](const std::string& why) {
    throw CheckpointError("cannot write the state_dict to " + file.string() + ": " + why);
  };
  const UniqueFd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd.valid()) fail(Why());
  try {
    WriteZip(TensorsOf(module), fd.get());
  } catch (const std::exception& error) {
    unlink(temporary.c_str());
    fail(FirstLine(MessageOf(error)));
  }
  if (rename(temporary.c_str(), file.c_str()) != 0) {
    const std::string why = Why();
    unlink(temporary.c_str());
    fail(why);
  }
}

StateDictReport load_state_dict(torch::nn::Module& module, const fs::path& file,
                                const StateDictOptions& options) {
  const auto fail = [&](const std::string& why) {
    throw CheckpointError("cannot load the state_dict of " + file.string() + ": " + why);
  };
  std::map<std::string, at::Tensor> saved;
  try {
    for (auto& [name, tensor] : Archive(file).Tensors(options.entry())) saved[name] = tensor;
  } catch (const std::exception& error) {
    fail(FirstLine(MessageOf(error)));
  }
  const Named own = TensorsOf(module);
  StateDictReport report = Differences(own, saved);
  if (options.strict() && !report.missing.empty()) fail("it lacks " + Listed(report.missing));
  if (options.strict() && !report.unexpected.empty()) {
    fail("the module lacks " + Listed(report.unexpected));
  }
  for (const auto& [name, tensor] : own) {
    const auto found = saved.find(name);
    if (found == saved.end() || found->second.sizes() == tensor.sizes()) continue;
    fail(name + " is " + c10::str(found->second.sizes()) + " in it, " + c10::str(tensor.sizes()) +
         " in the module");
  }
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : own) {
    const auto found = saved.find(name);
    if (found != saved.end()) tensor.detach().copy_(found->second);
  }
  return report;
}

}  // namespace muster
