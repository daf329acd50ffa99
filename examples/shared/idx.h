#ifndef MUSTER_EXAMPLES_SHARED_IDX_H_
#define MUSTER_EXAMPLES_SHARED_IDX_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "examples/shared/input_error.h"

// The IDX files of MNIST and Fashion-MNIST, plain or gzipped. No LibTorch here.
namespace examples {

// A file that is there but is not what it should be. what() is one line with the file, the offset,
// and what is wrong.
class CorruptData : public InputError {
 public:
  explicit CorruptData(const std::string& what);
};

// A file, or the folder, that is not there or cannot be read.
class MissingData : public InputError {
 public:
  explicit MissingData(const std::string& what);
};

struct Idx {
  std::vector<uint32_t> sizes;
  std::vector<uint8_t> bytes;
};

// Unsigned bytes in `dimensions` dimensions. Offsets are of the unpacked file.
Idx ReadIdx(const std::filesystem::path& file, size_t dimensions);

struct Split {
  uint32_t count = 0;
  std::vector<uint8_t> pictures;  // 28x28 each, 0 … 255
  std::vector<uint8_t> labels;    // 0 … 9
};

// "train" or "t10k": FOLDER/<prefix>-images-idx3-ubyte and …-labels-idx1-ubyte, each with or
// without .gz.
Split ReadSplit(const std::filesystem::path& folder, const std::string& prefix);

}  // namespace examples

#endif  // MUSTER_EXAMPLES_SHARED_IDX_H_
