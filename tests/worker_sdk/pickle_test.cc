#include "worker_sdk/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <muster/error.h>

namespace muster {
namespace {

using testing::HasSubstr;

PickledStateDict Some() {
  return {{"fc.weight", {"FloatStorage", "0", 6, 0, {2, 3}, {3, 1}}},
          {"big", {"BFloat16Storage", "1", int64_t{1} << 40, 70'000, {1 << 20}, {1}}},
          {"scalar", {"LongStorage", "2", 1, 0, {}, {}}}};
}

std::string ErrorOf(std::string_view bytes, const std::string& entry = "") {
  try {
    Unpickle(bytes, entry);
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Pickle, WhatIsWrittenIsReadAgain) { EXPECT_EQ(Unpickle(Pickle(Some())), Some()); }

TEST(Pickle, CutAnywhereOrWithAnyByteAlteredItIsReadOrATypedError) {
  const std::string whole = Pickle(Some());
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(ErrorOf(whole.substr(0, size)), HasSubstr("ends at byte " + std::to_string(size)))
        << size;
  }
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const int flip : {1, 2, 0x20, 0x80, 0xff}) {
      std::string altered = whole;
      altered[i] = static_cast<char>(altered[i] ^ flip);
      ErrorOf(altered);  // nothing but CheckpointError may come out
    }
  }
}

TEST(Pickle, AnEntryIsFoundAndWhatIsThereInsteadIsNamed) {
  // {"model": {}, "lr": 0.5}
  const std::string nested = std::string("\x80\x02}(X\x05\0\0\0model", 14) + "}" +
                             std::string("X\x02\0\0\0lrG\x3f\xe0\0\0\0\0\0\0u.", 18);
  EXPECT_TRUE(Unpickle(nested, "model").empty());
  EXPECT_THAT(ErrorOf(nested, "net"), HasSubstr("it holds no dict 'net'"));
  EXPECT_THAT(ErrorOf(nested), HasSubstr("with the dicts model: choose an entry"));
  EXPECT_THAT(ErrorOf("\x80\x02K\x05."), HasSubstr("it holds no dict"));
}

TEST(Pickle, WhatIsNotOfAStateDictIsAnErrorWithItsPlaceAndNothingIsRun) {
  EXPECT_THAT(ErrorOf(std::string("\x80\x02i", 3)), HasSubstr("byte 2: opcode 0x69"));
  EXPECT_THAT(ErrorOf("\x80\x02h\x07."), HasSubstr("byte 2: nothing was remembered as 7"));
  EXPECT_THAT(ErrorOf("\x80\x02)t."), HasSubstr("there is no mark"));
  EXPECT_THAT(ErrorOf("cos\nsystem\n(X\x02"), HasSubstr("ends at byte"));
  EXPECT_THAT(ErrorOf(std::string("cos\nsystem\n(X\x01\0\0\0xtR.", 21)), HasSubstr("no dict"));
}

TEST(Pickle, DeepNestingAndCyclesAreHarmless) {
  ErrorOf("\x80\x02)" + std::string(1'000'000, '\x85') + ".");
  ErrorOf("\x80\x02}q\x01" + std::string("N") + "h\x01s.");
}

}  // namespace
}  // namespace muster
