#ifndef MUSTER_STATE_DICT_H_
#define MUSTER_STATE_DICT_H_

#include <torch/arg.h>
#include <torch/nn/module.h>

#include <filesystem>
#include <string>
#include <vector>

// Models to Python and back. No collectives; one rank is enough to write.
namespace muster {

// Writes the parameters and buffers so that Python reads them:
//   module.load_state_dict(torch.load(file, weights_only=True))
// The file is replaced as a whole or not at all. Throws CheckpointError, with the file's name; for
// a tensor that is sparse, quantised, or of a dtype that has no storage class in Python, with its
// name.
void save_state_dict(const torch::nn::Module& module, const std::filesystem::path& file);

// What is read, and how strictly.
struct StateDictOptions {
  // The entry of the file that holds the state_dict, as in torch.save({"model": …, "epoch": 3}).
  // Empty: the file is one.
  TORCH_ARG(std::string, entry);
  // A name that only the module has, or only the file, is an error.
  TORCH_ARG(bool, strict) = true;
};

// What did not agree, where that is no error.
struct StateDictReport {
  std::vector<std::string> missing;     // in the file
  std::vector<std::string> unexpected;  // in the file, not in the module
};

// Reads what Python's torch.save(module.state_dict(), file) wrote, from torch 1.6 on (zip files),
// into the module, converted to its dtypes and devices. Runs no code of the file. Throws
// CheckpointError, with the file's name and what is wrong where, and changes nothing then: it is no
// such file, was cut off or altered, or a shape or, if strict, a name differs.
StateDictReport load_state_dict(torch::nn::Module& module, const std::filesystem::path& file,
                                const StateDictOptions& options = {});

}  // namespace muster

#endif  // MUSTER_STATE_DICT_H_
