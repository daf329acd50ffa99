#include "worker_sdk/failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using testing::ElementsAre;

constexpr const char* kUnused =
    "Expected to have finished reduction in the prior iteration before starting a new one. …\n"
    "Parameter indices which did not receive grad for rank 1: 2 3\n In addition, you can set";

TEST(Failure, KindsAreToldByTheWordsOfGlooAndC10d) {
  const std::pair<const char*, FailureKind> table[] = {
      {"[../third_party/gloo/gloo/transport/tcp/pair.cc:538] Connection closed by peer [::1]:5",
       FailureKind::kPeerLost},
      {"Read error [127.0.0.1]:1: Connection reset by peer", FailureKind::kPeerLost},
      {"writev [127.0.0.1]:1: Broken pipe", FailureKind::kPeerLost},
      {"Timed out waiting 500ms for recv operation to complete", FailureKind::kTimeout},
      {"wait timeout after 500ms, keys: /a", FailureKind::kTimeout},
      {kUnused, FailureKind::kUnusedParameter},
      {"mat1 and mat2 shapes cannot be multiplied", FailureKind::kOther},
  };
  for (const auto& [message, kind] : table) EXPECT_EQ(Classify(message), kind) << message;
}

TEST(Failure, UnusedParametersAreReadFromReducersMessage) {
  EXPECT_THAT(UnusedIndices(kUnused), ElementsAre(2, 3));
  EXPECT_THAT(UnusedIndices("something else: 1 2"), ElementsAre());
}

TEST(Failure, OneLineWithoutSourcePositions) {
  EXPECT_EQ(FirstLine("[../gloo/transport/tcp/pair.cc:538] Connection closed\nBacktrace"),
            "Connection closed");
  EXPECT_EQ(FirstLine("plain"), "plain");
  const std::string nccl =
      "NCCL error in: ProcessGroupNCCL.cpp:94, invalid usage (run with NCCL_DEBUG=WARN for "
      "details)\n"
      "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\n";
  EXPECT_EQ(
      FirstLine(nccl + "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1b000\n"),
      "NCCL: Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1b000");
  EXPECT_EQ(FirstLine(nccl), nccl.substr(0, nccl.find('\n')));
}

TEST(Failure, ANoteComesBackAsItWasLeft) {
  const FailureNote note{FailureKind::kUnusedParameter, 3, "no gradient", {"a.weight", "a.bias"}};
  const auto back = DecodeNote(Encode(note));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->kind, note.kind);
  EXPECT_EQ(back->rank, 3);
  EXPECT_EQ(back->what, "no gradient");
  EXPECT_EQ(back->names, note.names);
  for (const char* junk : {"", "1", "9\n0\nx", "1\n2"}) EXPECT_FALSE(DecodeNote(junk)) << junk;
}

}  // namespace
}  // namespace muster
