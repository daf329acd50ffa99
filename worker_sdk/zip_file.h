#ifndef MUSTER_WORKER_SDK_ZIP_FILE_H_
#define MUSTER_WORKER_SDK_ZIP_FILE_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

// Zip files as torch.save makes them: stored, not compressed; of any size (ZIP64). No LibTorch
// here.
namespace muster {

// CRC-32 of zip (and gzip), to be continued from an earlier one.
uint32_t Crc32(std::string_view bytes, uint32_t before = 0);

class ZipWriter {
 public:
  // What is written goes to `sink`, in order.
  explicit ZipWriter(std::function<void(std::string_view)> sink) : sink_(std::move(sink)) {}
  // The bytes begin at a multiple of 64, so that the file can be mapped into memory.
  void Add(const std::string& name, std::string_view bytes);
  void Finish();

 private:
  struct Member {
    std::string name;
    uint64_t size, offset;
    uint32_t crc;
  };
  void Put(std::string_view bytes);

  std::function<void(std::string_view)> sink_;
  std::vector<Member> members_;
  uint64_t position_ = 0;
};

// Throws CheckpointError, with the offset, for what is no such file, is cut off, or was altered.
class ZipReader {
 public:
  explicit ZipReader(const std::filesystem::path& file);

  bool Has(const std::string& name) const { return members_.count(name) == 1; }
  uint64_t SizeOf(const std::string& name) const { return members_.at(name).size; }
  std::vector<std::string> Names() const;
  // Into `data`, of SizeOf(name) bytes. Checks the checksum.
  void Read(const std::string& name, char* data) const;
  std::string Read(const std::string& name) const;

 private:
  struct Member {
    uint64_t size, offset;
    uint32_t crc;
    bool stored;
  };
  struct Directory {
    uint64_t count, size, offset;
  };
  Directory FindDirectory() const;
  std::string ReadAt(uint64_t offset, uint64_t size) const;
  void ReadAt(uint64_t offset, char* data, uint64_t size) const;

  UniqueFd file_;
  uint64_t file_size_ = 0;
  std::map<std::string, Member> members_;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_ZIP_FILE_H_
