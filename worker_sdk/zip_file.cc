#include "worker_sdk/zip_file.h"

#include <errno.h>
#include <fcntl.h>
#include <muster/error.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <system_error>

namespace muster {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr uint64_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kEnd64Size = 56,
                   kLocator64Size = 20, kCommentMax = 0xffff;
constexpr uint32_t kIn64 = 0xffffffff;
constexpr uint64_t kAlignment = 64;

class Fields {
 public:
  template <class T>
  Fields& Add(T number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
    return *this;
  }
  Fields& Text(std::string_view text) {
    bytes_.append(text);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

template <class T>
T At(std::string_view bytes, size_t offset) {
  T number{};
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

using Tables = std::array<std::array<uint32_t, 256>, 8>;

Tables MakeTables() {
  Tables tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320u : 0);
    tables[0][i] = crc;
  }
  for (size_t table = 1; table < tables.size(); ++table) {
    for (size_t i = 0; i < 256; ++i) {
      const uint32_t crc = tables[table - 1][i];
      tables[table][i] = (crc >> 8) ^ tables[0][crc & 0xff];
    }
  }
  return tables;
}

[[noreturn]] void Fail(const std::string& what) { throw CheckpointError(what); }
std::string Byte(uint64_t offset) { return "byte " + std::to_string(offset); }

}  // namespace

// Eight bytes at a time.
uint32_t Crc32(std::string_view bytes, uint32_t before) {
  static const Tables kTables = MakeTables();
  uint32_t crc = ~before;
  while (bytes.size() >= 8) {
    const uint64_t word = At<uint64_t>(bytes, 0) ^ crc;
    crc = 0;
    for (size_t i = 0; i < 8; ++i) crc ^= kTables[7 - i][(word >> (8 * i)) & 0xff];
    bytes.remove_prefix(8);
  }
  for (const char byte : bytes)
    crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<uint8_t>(byte)) & 0xff];
  return ~crc;
}

// ── Writing ─────────────────────────────────────────────────────────────────────────────────────

void ZipWriter::Put(std::string_view bytes) {
  sink_(bytes);
  position_ += bytes.size();
}

void ZipWriter::Add(const std::string& name, std::string_view bytes) {
  const Member member{name, bytes.size(), position_, Crc32(bytes)};
  // Sizes in an extra field of ZIP64, and another one that fills up to the alignment.
  const uint64_t plain = position_ + kLocalSize + name.size() + 20 + 4;
  const auto filling = static_cast<uint16_t>((kAlignment - plain % kAlignment) % kAlignment);
  Fields header;
  header.Add(kLocal).Add<uint16_t>(45).Add<uint16_t>(0x0800).Add<uint16_t>(0).Add<uint32_t>(0);
  header.Add(member.crc).Add(kIn64).Add(kIn64);
  header.Add(static_cast<uint16_t>(name.size())).Add(static_cast<uint16_t>(20 + 4 + filling));
  header.Text(name).Add<uint16_t>(1).Add<uint16_t>(16).Add(member.size).Add(member.size);
  header.Add<uint16_t>(0x4246).Add(filling).Text(std::string(filling, 'Z'));
  Put(header.bytes());
  Put(bytes);
  members_.push_back(member);
}

void ZipWriter::Finish() {
  const uint64_t begin = position_;
  for (const Member& member : members_) {
    Fields entry;
    entry.Add(kCentral).Add<uint16_t>(45).Add<uint16_t>(45).Add<uint16_t>(0x0800);
    entry.Add<uint16_t>(0).Add<uint32_t>(0).Add(member.crc).Add(kIn64).Add(kIn64);
    entry.Add(static_cast<uint16_t>(member.name.size())).Add<uint16_t>(28).Add<uint16_t>(0);
    entry.Add<uint16_t>(0).Add<uint16_t>(0).Add<uint32_t>(0).Add(kIn64).Text(member.name);
    entry.Add<uint16_t>(1).Add<uint16_t>(24).Add(member.size).Add(member.size).Add(member.offset);
    Put(entry.bytes());
  }
  const uint64_t end = position_, count = members_.size();
  Fields tail;
  tail.Add(kEnd64).Add<uint64_t>(kEnd64Size - 12).Add<uint16_t>(45).Add<uint16_t>(45);
  tail.Add<uint32_t>(0).Add<uint32_t>(0).Add(count).Add(count).Add(end - begin).Add(begin);
  tail.Add(kLocator64).Add<uint32_t>(0).Add(end).Add<uint32_t>(1);
  const auto few = static_cast<uint16_t>(std::min<uint64_t>(count, 0xffff));
  tail.Add(kEnd).Add<uint16_t>(0).Add<uint16_t>(0).Add(few).Add(few);
  tail.Add(kIn64).Add(kIn64).Add<uint16_t>(0);
  Put(tail.bytes());
}

// ── Reading ─────────────────────────────────────────────────────────────────────────────────────

void ZipReader::ReadAt(uint64_t offset, char* data, uint64_t size) const {
  if (offset > file_size_ || size > file_size_ - offset) {
    Fail("it ends at " + Byte(file_size_) + ", and something is to be at " + Byte(offset));
  }
  while (size > 0) {
    const ssize_t got = pread(file_.get(), data, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) Fail(std::generic_category().message(errno));
    if (got == 0) Fail("it ends at " + Byte(offset));
    offset += static_cast<uint64_t>(got);
    data += got;
    size -= static_cast<uint64_t>(got);
  }
}

std::string ZipReader::ReadAt(uint64_t offset, uint64_t size) const {
  if (size > file_size_) Fail("it ends at " + Byte(file_size_));
  std::string bytes(size, '\0');
  ReadAt(offset, bytes.data(), size);
  return bytes;
}

ZipReader::Directory ZipReader::FindDirectory() const {
  const uint64_t tail_size = std::min(file_size_, kEndSize + kCommentMax);
  const uint64_t tail_begin = file_size_ - tail_size;
  const std::string tail = ReadAt(tail_begin, tail_size);
  Fields signature;
  const size_t end = tail.rfind(signature.Add(kEnd).bytes());
  if (end == std::string::npos || tail.size() - end < kEndSize) {
    Fail("it is no zip file, or ends too early, at " + Byte(file_size_));
  }
  const uint64_t end_at = tail_begin + end;
  if (end_at >= kLocator64Size) {
    const std::string locator = ReadAt(end_at - kLocator64Size, kLocator64Size);
    if (At<uint32_t>(locator, 0) == kLocator64) {
      const uint64_t at = At<uint64_t>(locator, 8);
      const std::string end64 = ReadAt(at, kEnd64Size);
      if (At<uint32_t>(end64, 0) != kEnd64) Fail("there is no end record at " + Byte(at));
      return {At<uint64_t>(end64, 32), At<uint64_t>(end64, 40), At<uint64_t>(end64, 48)};
    }
  }
  return {At<uint16_t>(tail, end + 10), At<uint32_t>(tail, end + 12), At<uint32_t>(tail, end + 16)};
}

ZipReader::ZipReader(const std::filesystem::path& file)
    : file_(open(file.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat status {};
  if (!file_.valid() || fstat(file_.get(), &status) != 0) {
    Fail(std::generic_category().message(errno));
  }
  if (S_ISDIR(status.st_mode)) Fail("it is a folder");
  file_size_ = static_cast<uint64_t>(status.st_size);
  const Directory directory = FindDirectory();
  const std::string all = ReadAt(directory.offset, directory.size);
  size_t at = 0;
  for (uint64_t i = 0; i < directory.count; ++i) {
    const auto fail = [&] { Fail("its directory is damaged at " + Byte(directory.offset + at)); };
    if (all.size() - at < kCentralSize || At<uint32_t>(all, at) != kCentral) fail();
    const size_t name_size = At<uint16_t>(all, at + 28), extra_size = At<uint16_t>(all, at + 30);
    const size_t entry_size = kCentralSize + name_size + extra_size + At<uint16_t>(all, at + 32);
    if (all.size() - at < entry_size) fail();
    const uint32_t sizes[] = {At<uint32_t>(all, at + 24), At<uint32_t>(all, at + 20),
                              At<uint32_t>(all, at + 42)};
    uint64_t full[] = {sizes[0], sizes[1], sizes[2]};
    std::string_view extra(all.data() + at + kCentralSize + name_size, extra_size);
    while (extra.size() >= 4) {
      const auto id = At<uint16_t>(extra, 0);
      std::string_view data = extra.substr(4, At<uint16_t>(extra, 2));
      extra.remove_prefix(std::min(extra.size(), data.size() + 4));
      for (size_t k = 0; id == 1 && k < 3; ++k) {
        if (sizes[k] != kIn64) continue;
        if (data.size() < 8) fail();
        full[k] = At<uint64_t>(data, 0);
        data.remove_prefix(8);
      }
    }
    const bool stored = At<uint16_t>(all, at + 10) == 0 && full[0] == full[1];
    if (stored && full[0] > file_size_) fail();
    members_[all.substr(at + kCentralSize, name_size)] = {full[0], full[2],
                                                          At<uint32_t>(all, at + 16), stored};
    at += entry_size;
  }
}

std::vector<std::string> ZipReader::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, member] : members_) names.push_back(name);
  return names;
}

void ZipReader::Read(const std::string& name, char* data) const {
  const Member& member = members_.at(name);
  if (!member.stored) Fail(name + " is compressed");
  const std::string local = ReadAt(member.offset, kLocalSize);
  if (At<uint32_t>(local, 0) != kLocal) Fail("there is no " + name + " at " + Byte(member.offset));
  const uint64_t begin =
      member.offset + kLocalSize + At<uint16_t>(local, 26) + At<uint16_t>(local, 28);
  ReadAt(begin, data, member.size);
  if (Crc32({data, member.size}) != member.crc) {
    Fail(name + ", at " + Byte(begin) + ", does not match its checksum");
  }
}

std::string ZipReader::Read(const std::string& name) const {
  const uint64_t size = SizeOf(name);
  if (size > file_size_) Fail(name + " is larger than the file");
  std::string bytes(size, '\0');
  Read(name, bytes.data());
  return bytes;
}

}  // namespace muster
