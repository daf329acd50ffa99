#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <fstream>
#include <sstream>

#include "examples/mnist/options.h"
#include "examples/shared/answers.h"
#include "examples/shared/idx.h"
#include "examples/shared/input_error.h"

namespace mnist {
namespace {

namespace fs = std::filesystem;
using examples::Answers, examples::Judge, examples::Verdict;
using examples::CorruptData, examples::MissingData, examples::Split;
using examples::ReadIdx, examples::ReadSplit;
using testing::HasSubstr;

std::string BigEndian(uint32_t number) {
  return {static_cast<char>(number >> 24), static_cast<char>(number >> 16),
          static_cast<char>(number >> 8), static_cast<char>(number)};
}

std::string Pictures(uint32_t count, uint32_t side = 28) {
  return BigEndian(0x803) + BigEndian(count) + BigEndian(side) + BigEndian(side) +
         std::string(size_t{count} * side * side, '\x07');
}

std::string Labels(uint32_t count, char label = 3) {
  return BigEndian(0x801) + BigEndian(count) + std::string(count, label);
}

class IdxTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("idx." + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  fs::path WriteGz(const std::string& name, const std::string& bytes) const {
    const gzFile file = gzopen((folder_ / name).c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return folder_ / name;
  }
  static std::string Slurp(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }

  template <class F>
  static std::string CorruptionOf(F&& read) {
    try {
      read();
    } catch (const CorruptData& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      return error.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }

  fs::path folder_;
};

TEST_F(IdxTest, ReadsPlainAndGzippedFilesMixed) {
  Write("train-images-idx3-ubyte", Pictures(5));
  WriteGz("train-labels-idx1-ubyte.gz", Labels(5));
  const Split split = ReadSplit(folder_, "train");
  EXPECT_EQ(split.count, 5u);
  EXPECT_EQ(split.pictures.size(), 5u * 784);
  EXPECT_EQ(split.pictures[784], 7);
  EXPECT_EQ(split.labels, std::vector<uint8_t>(5, 3));
}

TEST_F(IdxTest, CutAtAnyByteTheErrorNamesTheFileAndTheOffset) {
  const std::string whole = Pictures(1, 4);
  for (size_t size = 0; size < whole.size(); ++size) {
    const fs::path file = Write("cut", whole.substr(0, size));
    const std::string what = CorruptionOf([&] { ReadIdx(file, 3); });
    EXPECT_THAT(what, HasSubstr(file.string() + ": offset " + std::to_string(size) + ": the file"));
  }
}

TEST_F(IdxTest, AGzippedFileCutAtAnyByteIsDetected) {
  const std::string whole = Slurp(WriteGz("whole.gz", Pictures(2, 9)));
  for (size_t size = 0; size < whole.size(); ++size) {
    const fs::path file = Write("cut.gz", whole.substr(0, size));
    CorruptionOf([&] { ReadIdx(file, 3); });
  }
}

TEST_F(IdxTest, EachKindOfDamageIsNamed) {
  const std::tuple<const char*, std::string, const char*> table[] = {
      {"magic", BigEndian(0x801) + BigEndian(1), "offset 0: magic number 2049 instead of 2051"},
      {"text", "<html>not found</html>", "offset 0: magic number"},
      {"zero", BigEndian(0x803) + BigEndian(0) + BigEndian(28) + BigEndian(28), "a size is 0"},
      {"huge", BigEndian(0x803) + std::string(12, '\xff'), "beyond all reason"},
      {"promises", BigEndian(0x803) + BigEndian(2'000'000) + BigEndian(28) + BigEndian(28),
       "offset 16: the file ends in the data"},
      {"more", Pictures(1, 4) + "x", "offset 32: bytes follow"},
  };
  for (const auto& [name, bytes, expected] : table) {
    const fs::path file = Write(name, bytes);
    const std::string what = CorruptionOf([&] { ReadIdx(file, 3); });
    EXPECT_THAT(what, HasSubstr(expected));
    EXPECT_THAT(what, HasSubstr(file.string()));
  }
}

TEST_F(IdxTest, FilesThatDoNotFitEachOtherAreNamed) {
  const auto split = [&] { return CorruptionOf([&] { ReadSplit(folder_, "t10k"); }); };
  Write("t10k-images-idx3-ubyte", Pictures(3, 8));
  Write("t10k-labels-idx1-ubyte", Labels(3));
  EXPECT_THAT(split(), HasSubstr("pictures of 8x8, 28x28 is needed"));
  Write("t10k-images-idx3-ubyte", Pictures(3));
  Write("t10k-labels-idx1-ubyte", Labels(2));
  EXPECT_THAT(split(), HasSubstr("2 labels for 3 pictures"));
  Write("t10k-labels-idx1-ubyte", Labels(3, 10));
  EXPECT_THAT(split(), HasSubstr("offset 8: label 10"));
}

TEST_F(IdxTest, WhatIsNotThereIsNamed) {
  EXPECT_THROW(ReadSplit(folder_ / "nowhere", "train"), MissingData);
  EXPECT_THROW(ReadSplit(folder_, "train"), MissingData);
}

TEST(Options, AreTheDocumentedOnes) {
  const mnist::Options defaults = ParseOptions({"--data", "d"});
  EXPECT_EQ(defaults.epochs, 5);
  EXPECT_EQ(defaults.batch_size, 64);
  EXPECT_EQ(defaults.steps.lr, 0.01);
  const mnist::Options options =
      ParseOptions({"--data=d", "--epochs=2", "--batch-size", "8", "--lr", "1e-3", "--seed", "9",
                    "--checkpoint-dir", "c", "--checkpoint-every", "4", "--save-model=m"});
  EXPECT_EQ(options.epochs, 2);
  EXPECT_EQ(options.batch_size, 8);
  EXPECT_EQ(options.steps.lr, 1e-3);
  EXPECT_EQ(options.seed, 9u);
  EXPECT_EQ(options.checkpoint_dir, "c");
  EXPECT_EQ(options.checkpoint_every, 4);
  EXPECT_EQ(options.save_model, "m");
  EXPECT_TRUE(ParseOptions({"--help"}).help);
}

TEST(Options, AWrongOneIsNamed) {
  const std::pair<std::vector<std::string>, const char*> table[] = {
      {{}, "--data DIR is missing"},
      {{"--data"}, "--data needs a value"},
      {{"--data="}, "--data needs a name"},
      {{"--dta", "d"}, "unknown argument '--dta'"},
      {{"d"}, "unknown argument 'd'"},
      {{"--data", "d", "--epochs", "0"}, "--epochs '0' is not"},
      {{"--data", "d", "--epochs", "2x"}, "--epochs '2x' is not"},
      {{"--data", "d", "--batch-size", "-1"}, "--batch-size '-1' is not"},
      {{"--data", "d", "--lr", "fast"}, "--lr 'fast' is not"},
      {{"--data", "d", "--lr", "nan"}, "--lr 'nan' is not"},
      {{"--data", "d", "--seed", "-1"}, "--seed '-1' is not"},
      {{"--data", "d", "--checkpoint-every", "3"}, "--checkpoint-every needs --checkpoint-dir"},
      {{"--data", "d", "--keep", "3"}, "--keep needs --checkpoint-dir"},
      {{"--data", "d", "--async"}, "--async needs --checkpoint-dir"},
      {{"--data", "d", "--keep", "0"}, "--keep '0' is not"},
      {{"--data", "d", "--amp", "fp8"}, "--amp 'fp8' is none of bf16, fp16"},
      {{"--data", "d", "--scaler"}, "--scaler needs --amp fp16"},
      {{"--data", "d", "--scaler", "--amp", "bf16"}, "--scaler needs --amp fp16"},
      {{"--data", "d", "--accumulate", "0"}, "--accumulate '0' is not"},
      {{"--data", "d", "--clip", "-1"}, "--clip '-1' is not"},
      {{"--data", "d", "--warmup", "-1"}, "--warmup '-1' is not"},
      {{"--data", "d", "--hook", "int8"}, "--hook 'int8' is none of allreduce, fp16, bf16"},
      {{"--data", "d", "--bucket-mb", "0"}, "--bucket-mb '0' is not"},
      {{"--data", "d", "--backend", "mpi"}, "--backend 'mpi' is none of auto, gloo, nccl"},
      {{"--data", "d", "--op-timeout", "0"}, "--op-timeout '0' is not"},
      {{"--data", "d", "--init-timeout", "x"}, "--init-timeout 'x' is not"},
      {{"--data", "d", "--stats=yes"}, "--stats takes no value"},
      {{"--data", "d", "--find-unused", "--static-graph"}, "--find-unused with --static-graph"},
      {{"--data", "d", "--static-graph", "--accumulate=2"}, "--static-graph with --accumulate"},
      {{"--data", "d", "--no-broadcast-buffers"}, "--no-broadcast-buffers needs --batch-norm"},
      {{"--data", "d", "--join", "--sync-batch-norm"}, "--join with --sync-batch-norm"},
      {{"--data", "d", "--join", "--scaler", "--amp=fp16"}, "--join with --scaler"},
      {{"--data", "d", "--join", "--accumulate", "2"}, "--join with --accumulate"},
      {{"--data", "d", "--join", "--drop-last"}, "--join with --drop-last"},
      {{"--data", "d", "--join", "--checkpoint-dir=c", "--checkpoint-every=2"},
       "--join with --checkpoint-every"},
  };
  for (const auto& [arguments, expected] : table) {
    try {
      ParseOptions(arguments);
      ADD_FAILURE() << expected;
    } catch (const examples::UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr(expected));
    }
  }
}

TEST(Answers, AreOkOnlyIfAllThreeAre) {
  const Answers good{{{0, 2}, {1, 3}}, 4, 0, 3.7e-9};
  const Verdict verdict = Judge(good, false);
  EXPECT_TRUE(verdict.ok);
  EXPECT_THAT(verdict.text,
              HasSubstr("data split        rank 0: 2 samples, rank 1: 2 samples, overlap 0"));
  EXPECT_THAT(verdict.text, HasSubstr("max difference over 2 ranks: 0 "));
  EXPECT_THAT(verdict.text, HasSubstr("joined batch: 3.7e-09"));
  EXPECT_EQ(verdict.text.find('\033'), std::string::npos);
  EXPECT_THAT(Judge(good, true).text, HasSubstr("\033[32mok"));

  Answers overlap = good, missed = good, parameters = good, gradients = good;
  overlap.shares[1].push_back(0);
  missed.shares[1].pop_back();
  parameters.parameter_difference = 1e-12;
  gradients.gradient_difference = 1e-3;
  EXPECT_THAT(Judge(overlap, false).text, HasSubstr("overlap 1"));
  EXPECT_THAT(Judge(missed, false).text, HasSubstr("missed 1"));
  Answers dropped = missed;
  dropped.left_out = 1;
  EXPECT_TRUE(Judge(dropped, false).ok);
  dropped.compared = "in single precision";
  EXPECT_THAT(Judge(dropped, false).text, HasSubstr("batch: 3.7e-09 (in single precision) "));
  Answers lost_parameters = good, lost_gradients = good;
  lost_parameters.lost_parameters = 7;
  lost_gradients.lost_gradients = 8;
  EXPECT_THAT(Judge(lost_parameters, false).text, HasSubstr("ranks: 0; 7 values are not finite"));
  EXPECT_THAT(Judge(lost_gradients, false).text, HasSubstr("; 8 values are not finite"));
  for (const Answers& bad :
       {overlap, missed, parameters, gradients, lost_parameters, lost_gradients}) {
    EXPECT_FALSE(Judge(bad, false).ok);
    EXPECT_THAT(Judge(bad, false).text, HasSubstr("NOT OK"));
  }
}

}  // namespace
}  // namespace mnist
