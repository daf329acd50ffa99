#include "examples/shared/idx.h"

#include <errno.h>
#include <sysexits.h>
#include <zlib.h>

#include <algorithm>
#include <memory>
#include <system_error>

namespace examples {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kSide = 28;
constexpr uint64_t kBytesMax = uint64_t{4} << 30;

// Reads forward and knows where it is. zlib passes plain files through.
class Reader {
 public:
  explicit Reader(const fs::path& path) : path_(path), file_(gzopen(path.c_str(), "rb"), &gzclose) {
    if (!file_) {
      throw MissingData(path.string() + ": " + std::generic_category().message(errno));
    }
    gzbuffer(file_.get(), 1 << 17);
  }

  void Read(uint8_t* data, size_t size, const char* what) {
    while (size > 0) {
      const unsigned piece = static_cast<unsigned>(std::min<size_t>(size, 1 << 20));
      const int got = gzread(file_.get(), data, piece);
      if (got < 0) Fail(std::string("damaged gzip data in ") + what);
      offset_ += static_cast<uint64_t>(got);
      // A cut gzip file shows here, as an error or as an early end.
      if (got < static_cast<int>(piece)) Fail(std::string("the file ends in ") + what);
      data += got;
      size -= static_cast<size_t>(got);
    }
  }

  uint32_t Number(const char* what) {
    uint8_t b[4];
    Read(b, sizeof b, what);
    return uint32_t{b[0]} << 24 | uint32_t{b[1]} << 16 | uint32_t{b[2]} << 8 | uint32_t{b[3]};
  }

  void ExpectEnd() {
    uint8_t byte = 0;
    const int got = gzread(file_.get(), &byte, 1);
    if (got > 0) Fail("bytes follow the end of the data");
    int error = Z_OK;
    gzerror(file_.get(), &error);
    if (got < 0 || (error != Z_OK && error != Z_STREAM_END)) Fail("damaged gzip data at the end");
  }

  [[noreturn]] void Fail(const std::string& what) const { FailAt(offset_, what); }
  [[noreturn]] void FailAt(uint64_t offset, const std::string& what) const {
    throw CorruptData(path_.string() + ": offset " + std::to_string(offset) + ": " + what);
  }

 private:
  fs::path path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  uint64_t offset_ = 0;
};

fs::path Find(const fs::path& folder, const std::string& name) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw MissingData(folder.string() + ": there is no such folder; tools/get_digits makes one");
  }
  for (const char* suffix : {"", ".gz"}) {
    const fs::path file = folder / (name + suffix);
    if (fs::is_regular_file(file, error)) return file;
  }
  throw MissingData((folder / name).string() + ": there is no such file, and none with .gz");
}

}  // namespace

CorruptData::CorruptData(const std::string& what) : InputError(EX_DATAERR, what) {}
MissingData::MissingData(const std::string& what) : InputError(EX_NOINPUT, what) {}

Idx ReadIdx(const fs::path& file, size_t dimensions) {
  Reader reader(file);
  const uint32_t magic = reader.Number("the magic number");
  const uint32_t expected = 0x0800 + static_cast<uint32_t>(dimensions);
  if (magic != expected) {
    reader.FailAt(0, "magic number " + std::to_string(magic) + " instead of " +
                         std::to_string(expected) + " (unsigned bytes in " +
                         std::to_string(dimensions) + " dimensions)");
  }
  Idx idx;
  uint64_t total = 1;
  for (size_t i = 0; i < dimensions; ++i) {
    idx.sizes.push_back(reader.Number("the sizes"));
    if (idx.sizes.back() == 0) reader.FailAt(4 + 4 * i, "a size is 0");
    total = total > kBytesMax ? total : total * idx.sizes.back();
  }
  if (total > kBytesMax) reader.FailAt(4, "the sizes are beyond all reason");
  // Grows with what is there, so that a damaged size costs no memory.
  constexpr uint64_t kPiece = 1 << 24;
  for (uint64_t done = 0; done < total;) {
    const uint64_t piece = std::min(kPiece, total - done);
    idx.bytes.resize(done + piece);
    reader.Read(idx.bytes.data() + done, piece, "the data");
    done += piece;
  }
  reader.ExpectEnd();
  return idx;
}

Split ReadSplit(const fs::path& folder, const std::string& prefix) {
  const fs::path pictures_file = Find(folder, prefix + "-images-idx3-ubyte");
  const fs::path labels_file = Find(folder, prefix + "-labels-idx1-ubyte");
  Idx pictures = ReadIdx(pictures_file, 3);
  if (pictures.sizes[1] != kSide || pictures.sizes[2] != kSide) {
    throw CorruptData(pictures_file.string() + ": offset 8: pictures of " +
                      std::to_string(pictures.sizes[1]) + "x" + std::to_string(pictures.sizes[2]) +
                      ", 28x28 is needed");
  }
  Idx labels = ReadIdx(labels_file, 1);
  if (labels.sizes[0] != pictures.sizes[0]) {
    throw CorruptData(labels_file.string() + ": offset 4: " + std::to_string(labels.sizes[0]) +
                      " labels for " + std::to_string(pictures.sizes[0]) + " pictures");
  }
  const auto wrong = std::find_if(labels.bytes.begin(), labels.bytes.end(),
                                  [](uint8_t label) { return label > 9; });
  if (wrong != labels.bytes.end()) {
    throw CorruptData(labels_file.string() + ": offset " +
                      std::to_string(8 + (wrong - labels.bytes.begin())) + ": label " +
                      std::to_string(*wrong) + ", 0 to 9 is expected");
  }
  return {pictures.sizes[0], std::move(pictures.bytes), std::move(labels.bytes)};
}

}  // namespace examples
