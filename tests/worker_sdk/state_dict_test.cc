// Models to Python and back: golden/state_dict_in_python.py is Python's side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <muster/state_dict.h>
#include <torch/nn/modules/batchnorm.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/worker_sdk/nets.h"
#include "tests/worker_sdk/ranks.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

struct Net : torch::nn::Module {
  torch::nn::Linear fc1 = register_module("fc1", torch::nn::Linear(6, 5));
  torch::nn::BatchNorm1d bn = register_module("bn", torch::nn::BatchNorm1d(5));
  torch::nn::Linear fc2 = register_module("fc2", torch::nn::Linear(5, 3));
  at::Tensor low = register_buffer("low", at::zeros({4}, at::kBFloat16));
  at::Tensor none = register_buffer("none", at::zeros({0, 3}));
  at::Tensor wave = register_buffer("wave", at::zeros({2}, at::kComplexFloat));

  std::map<std::string, at::Tensor> Tensors() const {
    std::map<std::string, at::Tensor> all;
    for (const auto& item : named_parameters()) all[item.key()] = item.value().detach();
    for (const auto& item : named_buffers()) all[item.key()] = item.value();
    return all;
  }
};

// As fill() of the script.
at::Tensor Expected(int64_t k, const at::Tensor& like) {
  const at::Tensor values = at::arange(like.numel()).to(at::kDouble) / 8 + k;
  return values.reshape(like.sizes()).to(like.scalar_type());
}

void Fill(Net& net) {
  int64_t k = 0;
  for (auto& [name, tensor] : net.Tensors()) tensor.copy_(Expected(k++, tensor));
}

void ExpectFilled(const Net& net) {
  int64_t k = 0;
  for (const auto& [name, tensor] : net.Tensors()) {
    EXPECT_TRUE(tensor.equal(Expected(k++, tensor))) << name << "\n" << tensor;
  }
}

fs::path Temporary(const std::string& name) {
  return fs::path(testing::TempDir()) / (std::to_string(getpid()) + "." + name);
}

std::string Slurp(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

void Spill(const fs::path& file, std::string_view bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

template <class F>
std::string ErrorOf(F&& attempt) {
  try {
    attempt();
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "no error";
}

TEST(StateDict, OfPythonIsRead) {
  const char* fresh = std::getenv("MUSTER_STATE_DICT_OF_PYTHON");
  const fs::path file = fresh != nullptr ? fresh : "tests/worker_sdk/golden/state_dict.pt";
  EXPECT_TRUE(OnRanks(1, [&](int) {
    Net net, nested;
    load_state_dict(net, file);
    ExpectFilled(net);
    const fs::path within = file.string() + ".nested";
    load_state_dict(nested, within, StateDictOptions().entry("model"));
    ExpectFilled(nested);
    EXPECT_THAT(ErrorOf([&] { load_state_dict(nested, within); }),
                HasSubstr("with the dicts model: choose an entry"));
    net.to(at::kDouble);
    load_state_dict(net, file);
    EXPECT_EQ(net.fc1->weight.scalar_type(), at::kDouble) << "converted, as Python does";
    return 0;
  }));
}

TEST(StateDict, ForPythonIsWrittenAndReadHereToo) {
  const char* wanted = std::getenv("MUSTER_STATE_DICT_FOR_PYTHON");
  const fs::path file = wanted != nullptr ? wanted : Temporary("ours.pt").string();
  EXPECT_TRUE(OnRanks(1, [&](int) {
    Net net, other;
    Fill(net);
    net.fc2->weight.set_data(net.fc2->weight.detach().t().contiguous().t());
    save_state_dict(net, file);
    const std::string bytes = Slurp(file);
    load_state_dict(other, file);
    ExpectFilled(other);
    save_state_dict(other, file);
    EXPECT_EQ(Slurp(file), bytes) << "the same model is the same bytes";
    EXPECT_FALSE(fs::exists(file.string() + ".tmp"));
    return 0;
  }));
}

TEST(StateDict, WhatDiffersIsNamedAndNothingIsChanged) {
  EXPECT_TRUE(OnRanks(1, [&](int) {
    const fs::path file = Temporary("small.pt");
    SmallNet small;
    save_state_dict(small, file);
    Net net;
    const at::Tensor before = net.fc2->weight.detach().clone();
    EXPECT_THAT(ErrorOf([&] { load_state_dict(net, file); }),
                HasSubstr(file.string() + ": it lacks bn.weight, bn.bias"));
    const auto report = load_state_dict(small, file);
    EXPECT_THAT(report.missing, ElementsAre());
    small.register_buffer("more", at::ones({2}));
    save_state_dict(small, file);
    SmallNet plain;
    EXPECT_THAT(ErrorOf([&] { load_state_dict(plain, file); }), HasSubstr("the module lacks more"));
    const auto lenient = load_state_dict(plain, file, StateDictOptions().strict(false));
    EXPECT_THAT(lenient.unexpected, ElementsAre("more"));
    torch::nn::Linear shape(6, 4);
    save_state_dict(*shape, file);
    struct Inner : torch::nn::Module {
      torch::nn::Linear fc = register_module("fc", torch::nn::Linear(5, 4));
    } inner;
    torch::nn::Linear other(5, 4);
    EXPECT_THAT(ErrorOf([&] { load_state_dict(*other, file); }),
                HasSubstr("weight is [4, 6] in it, [4, 5] in the module"));
    EXPECT_TRUE(net.fc2->weight.equal(before));
    return 0;
  }));
}

TEST(StateDict, AMissingForeignOrCutFileIsATypedErrorWithItsName) {
  EXPECT_TRUE(OnRanks(1, [&](int) {
    const fs::path file = Temporary("cut.pt");
    SmallNet net;
    EXPECT_THAT(ErrorOf([&] { load_state_dict(net, file); }),
                HasSubstr(file.string() + ": No such file or directory"));
    Spill(file, "not a zip file at all, but longer than the end record of one is");
    EXPECT_THAT(ErrorOf([&] { load_state_dict(net, file); }),
                HasSubstr(file.string() + ": it is no zip file, or ends too early, at byte"));
    save_state_dict(net, file);
    const std::string whole = Slurp(file);
    const at::Tensor before = Flat(net).clone();
    for (size_t size = 0; size < whole.size(); size += size < 100 ? 1 : 37) {
      Spill(file, std::string_view(whole).substr(0, size));
      EXPECT_THAT(ErrorOf([&] { load_state_dict(net, file); }), HasSubstr(file.string())) << size;
    }
    std::string altered = whole;
    altered[(whole.find("archive/data/0") / 64 + 2) * 64] ^= 1;  // its data begin at a multiple
    Spill(file, altered);
    EXPECT_THAT(ErrorOf([&] { load_state_dict(net, file); }),
                HasSubstr("does not match its checksum"));
    EXPECT_TRUE(Flat(net).equal(before));
    return 0;
  }));
}

TEST(StateDict, WhatCannotBeWrittenIsATypedErrorAndTheOldFileStays) {
  EXPECT_TRUE(OnRanks(1, [&](int) {
    const fs::path file = Temporary("full.pt");
    SmallNet net;
    save_state_dict(net, file);
    const std::string before = Slurp(file);
    fs::create_symlink("/dev/full", file.string() + ".tmp");
    EXPECT_THAT(ErrorOf([&] { save_state_dict(net, file); }),
                HasSubstr(file.string() + ": No space left on device"));
    EXPECT_EQ(Slurp(file), before);
    EXPECT_THAT(ErrorOf([&] { save_state_dict(net, "/proc/none/model.pt"); }),
                HasSubstr("/proc/none/model.pt: No such file or directory"));
    net.register_buffer("odd", at::zeros({2}, at::kUInt16));
    EXPECT_THAT(ErrorOf([&] { save_state_dict(net, file); }),
                HasSubstr("odd is UInt16, Strided: Python has no storage class for it"));
    EXPECT_EQ(Slurp(file), before);
    return 0;
  }));
}

}  // namespace
}  // namespace muster
