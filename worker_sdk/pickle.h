#ifndef MUSTER_WORKER_SDK_PICKLE_H_
#define MUSTER_WORKER_SDK_PICKLE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The part of Python's pickle format that torch.save uses for a state_dict. No LibTorch here, and
// nothing that is read is ever executed.
namespace muster {

// A tensor as data.pkl describes it; its numbers are in another record.
struct PickledTensor {
  std::string storage;  // "FloatStorage"
  std::string key;      // the record "data/" + key
  int64_t numel = 0;    // of the storage
  int64_t offset = 0;   // of the first element, in elements
  std::vector<int64_t> sizes, strides;

  bool operator==(const PickledTensor&) const = default;
};

using PickledStateDict = std::vector<std::pair<std::string, PickledTensor>>;

// An OrderedDict, readable with weights_only.
std::string Pickle(const PickledStateDict& tensors);

// The tensors of the dict that `entry` names in the outermost dict, or of that itself if `entry` is
// empty; other values in it are left out. Throws CheckpointError, with the offset.
PickledStateDict Unpickle(std::string_view bytes, const std::string& entry = "");

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_PICKLE_H_
