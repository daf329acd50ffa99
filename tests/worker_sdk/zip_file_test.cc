#include "worker_sdk/zip_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <muster/error.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace muster {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

const std::string kBytes("some\0bytes, more than eight", 27);

std::string Made() {
  std::string out;
  ZipWriter writer([&](std::string_view bytes) { out.append(bytes); });
  writer.Add("a/empty", "");
  writer.Add("a/bytes", kBytes);
  writer.Add("a/same again", kBytes);
  writer.Finish();
  return out;
}

fs::path Spill(std::string_view bytes) {
  const fs::path file = fs::path(testing::TempDir()) / (std::to_string(getpid()) + ".zip");
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  return file;
}

std::string ReadAll(std::string_view zip) {
  try {
    const ZipReader reader(Spill(zip));
    std::string all;
    for (const std::string& name : reader.Names()) all += name + "=" + reader.Read(name) + ";";
    return all;
  } catch (const CheckpointError& error) {
    return std::string("error: ") + error.what();
  }
}

TEST(ZipFile, TheChecksumIsThatOfZipAndCanBeContinued) {
  EXPECT_EQ(Crc32("123456789"), 0xcbf43926u);
  EXPECT_EQ(Crc32(""), 0u);
  EXPECT_EQ(Crc32(std::string_view(kBytes).substr(5), Crc32(kBytes.substr(0, 5))), Crc32(kBytes));
}

TEST(ZipFile, WhatIsWrittenIsReadAgainAndBeginsAtMultiplesOf64) {
  const std::string zip = Made();
  const ZipReader reader(Spill(zip));
  EXPECT_THAT(reader.Names(), ElementsAre("a/bytes", "a/empty", "a/same again"));
  EXPECT_EQ(reader.Read("a/bytes"), kBytes);
  EXPECT_EQ(reader.Read("a/empty"), "");
  EXPECT_EQ(reader.SizeOf("a/same again"), kBytes.size());
  EXPECT_FALSE(reader.Has("a"));
  EXPECT_EQ(zip.find(kBytes) % 64, 0u);
}

TEST(ZipFile, CutAnywhereItIsATypedError) {
  const std::string zip = Made();
  for (size_t size = 0; size < zip.size(); ++size) {
    EXPECT_THAT(ReadAll(zip.substr(0, size)), testing::StartsWith("error: ")) << size;
  }
}

TEST(ZipFile, WithAnyByteAlteredItIsReadTheSameOrATypedError) {
  const std::string zip = Made(), whole = ReadAll(zip);
  for (size_t i = 0; i < zip.size(); ++i) {
    for (const int flip : {1, 0xff}) {
      std::string altered = zip;
      altered[i] = static_cast<char>(altered[i] ^ flip);
      const std::string all = ReadAll(altered);
      const bool other_name = all.find(kBytes) != std::string::npos;
      EXPECT_TRUE(all == whole || all.starts_with("error: ") || other_name) << i << ": " << all;
    }
  }
}

TEST(ZipFile, WhatIsNoZipFileOrNotThereIsATypedError) {
  EXPECT_THAT(ReadAll("hello"), testing::HasSubstr("no zip file, or ends too early, at byte 5"));
  EXPECT_THROW(ZipReader{"/nonexistent/file"}, CheckpointError);
  EXPECT_THROW(ZipReader{testing::TempDir()}, CheckpointError);
}

}  // namespace
}  // namespace muster
