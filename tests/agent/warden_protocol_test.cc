#include "agent/warden_protocol.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace muster {
namespace {

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}

  uint32_t Number() { return static_cast<uint32_t>(random_()); }
  uint32_t Below(uint32_t n) { return Number() % n; }
  std::string Bytes(uint32_t most) {
    std::string bytes(Below(most + 1), '\0');
    for (char& byte : bytes) byte = static_cast<char>(Number());
    return bytes;
  }
  std::vector<std::string> List(uint32_t least) {
    std::vector<std::string> list(least + Below(5));
    for (std::string& item : list) item = Bytes(Below(20) == 0 ? 70'000 : 12);
    return list;
  }
  WardenRequest Request() {
    switch (Below(4)) {
      case 0:
        return SpawnRequest{Number(), List(1), List(0), static_cast<uint8_t>(Below(4)),
                            std::vector<uint32_t>(Below(3), Below(kCpusMax))};
      case 1:
        return SignalRequest{static_cast<int32_t>(Number()), Below(2) == 0,
                             static_cast<int32_t>(Number())};
      case 2:
        return FenceRequest{static_cast<int64_t>(Number()) << 20};
      default:
        return LastWillRequest{List(0), "/a folder"};
    }
  }
  WardenAnswer Answer() {
    switch (Below(4)) {
      case 0:
        return StartedAnswer{Number(), static_cast<int32_t>(Number())};
      case 1:
        return NotStartedAnswer{Number(), static_cast<int32_t>(Number()), Below(2) == 0};
      case 2:
        return ExitedAnswer{Number(), static_cast<int32_t>(Number()), Below(2) == 0};
      default:
        return EmptyAnswer{};
    }
  }

 private:
  std::mt19937_64 random_;
};

TEST(WardenProtocol, WhatIsEncodedComesBack) {
  Dice dice(1);
  for (int i = 0; i < 500; ++i) {
    const WardenRequest request = dice.Request();
    const std::string frame = Encode(request);
    ASSERT_EQ(FrameLength(frame), frame.size());
    ASSERT_EQ(DecodeRequest(frame), request) << i;
    const WardenAnswer answer = dice.Answer();
    ASSERT_EQ(DecodeAnswer(Encode(answer)), answer) << i;
  }
}

TEST(WardenProtocol, AFrameIsTakenWholeOrNotAtAll) {
  Dice dice(2);
  for (int i = 0; i < 50; ++i) {
    const std::string frame = Encode(dice.Request());
    for (size_t length = 0; length < std::min<size_t>(frame.size(), 300); ++length) {
      ASSERT_FALSE(DecodeRequest(frame.substr(0, length)));
    }
    ASSERT_FALSE(DecodeRequest(frame + '\0'));
    const std::string answer = Encode(dice.Answer());
    for (size_t length = 0; length < answer.size(); ++length) {
      ASSERT_FALSE(DecodeAnswer(answer.substr(0, length)));
    }
    ASSERT_FALSE(DecodeAnswer(answer + '\0'));
  }
}

TEST(WardenProtocol, ALengthThatLiesIsNotFollowed) {
  // Cut down, with the header corrected: the fields inside promise more than is there.
  Dice dice(3);
  for (int i = 0; i < 200; ++i) {
    std::string frame = Encode(dice.Request());
    if (frame.size() == kFrameHeader + 1) continue;
    frame.resize(kFrameHeader + 1 + dice.Below(frame.size() - kFrameHeader - 1));
    const auto length = static_cast<uint32_t>(frame.size() - kFrameHeader);
    frame.replace(0, sizeof(length), reinterpret_cast<const char*>(&length), sizeof(length));
    ASSERT_FALSE(DecodeRequest(frame)) << i;
  }
}

TEST(WardenProtocol, GarbageIsRefusedOrIsSomethingThatEncodesToTheSameBytes) {
  Dice dice(4);
  for (int i = 0; i < 20'000; ++i) {
    std::string frame = dice.Bytes(40);
    if (frame.size() > kFrameHeader) {
      const auto length = static_cast<uint32_t>(frame.size() - kFrameHeader);
      frame.replace(0, sizeof(length), reinterpret_cast<const char*>(&length), sizeof(length));
      frame[kFrameHeader] = static_cast<char>(dice.Below(9));
    }
    if (const auto request = DecodeRequest(frame)) {
      ASSERT_EQ(Encode(*request), frame);
    }
    if (const auto answer = DecodeAnswer(frame)) {
      ASSERT_EQ(Encode(*answer), frame);
    }
  }
}

TEST(WardenProtocol, AFlippedByteIsRefusedOrChangesTheMeaning) {
  Dice dice(5);
  for (int i = 0; i < 2000; ++i) {
    const WardenAnswer answer = dice.Answer();
    std::string frame = Encode(answer);
    frame[dice.Below(frame.size())] ^= static_cast<char>(1 + dice.Below(255));
    const auto read = DecodeAnswer(frame);
    ASSERT_TRUE(!read || *read != answer);
    if (read) {
      ASSERT_EQ(Encode(*read), frame);
    }
  }
}

TEST(WardenProtocol, ASpawnWithoutAProgramOrWithFourDescriptorsIsRefused) {
  EXPECT_FALSE(DecodeRequest(Encode(WardenRequest(SpawnRequest{0, {}, {}, 2}))));
  EXPECT_FALSE(DecodeRequest(Encode(WardenRequest(SpawnRequest{0, {"/bin/true"}, {}, 4}))));
  EXPECT_FALSE(
      DecodeRequest(Encode(WardenRequest(SpawnRequest{0, {"/bin/true"}, {}, 2, {kCpusMax}}))));
}

TEST(WardenProtocol, RequestsAndAnswersAreNotMistakenForEachOther) {
  EXPECT_FALSE(DecodeAnswer(Encode(WardenRequest(SignalRequest{15, true}))));
  EXPECT_FALSE(DecodeRequest(Encode(WardenAnswer(EmptyAnswer{}))));
}

}  // namespace
}  // namespace muster
