#ifndef MUSTER_WORKER_SDK_BYTE_STREAM_H_
#define MUSTER_WORKER_SDK_BYTE_STREAM_H_

#include <muster/error.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace muster {

// Numbers of 8 bytes and strings with their length before them, one after the other.
class ByteWriter {
 public:
  void Number(uint64_t number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  void String(std::string_view text) {
    Number(text.size());
    bytes_.append(text);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Throws CheckpointError where the bytes end too early. Views point into what was given.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  uint64_t Number() {
    uint64_t number = 0;
    const std::string_view raw = Raw(sizeof number);
    std::memcpy(&number, raw.data(), sizeof number);
    return number;
  }
  std::string_view String() { return Raw(Number()); }
  bool done() const { return bytes_.empty(); }

 private:
  std::string_view Raw(uint64_t size) {
    if (size > bytes_.size()) throw CheckpointError("the checkpoint's content ends too early");
    const std::string_view raw = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return raw;
  }

  std::string_view bytes_;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_BYTE_STREAM_H_
