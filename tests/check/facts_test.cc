#include "check/facts.h"

#include <gtest/gtest.h>

namespace muster::check {
namespace {

Facts FullFacts() {
  Facts facts;
  facts.rank = 3;
  facts.local_rank = 1;
  facts.workers = 2;
  facts.node = 1;
  facts.host = "gpu7";
  facts.address = "10.0.0.7";
  facts.port = 40123;
  facts.backend = "nccl";
  facts.muster = "0.1.0";
  facts.libtorch = "2.11.0";
  facts.torch = "yes";
  facts.nccl = "2.28.9";
  facts.driver = "570.124.06";
  facts.gpus = 2;
  facts.all_gpus = 8;
  facts.shared_memory = int64_t{64} << 30;
  facts.locked_memory = -1;
  facts.infiniband = {"mlx5_0:1 ACTIVE", "mlx5_1:1 DOWN"};
  facts.interfaces = {
      {"lo", 65536, {"127.0.0.1", "::1"}}, {"eth0", 1500, {"10.0.0.7"}}, {"x", 9, {}}};
  facts.host_addresses = {"127.0.1.1"};
  facts.node_addresses = {"10.0.0.7"};
  facts.master_addresses = {"10.0.0.1", "fd00::1"};
  facts.variables = {{"NCCL_DEBUG", "INFO"}, {"NCCL_ALGO", "a=b\nc\\d"}};
  return facts;
}

TEST(Facts, ComeBackAsTheyWereSent) {
  for (const Facts& facts : {Facts(), FullFacts()}) {
    const std::optional<Fields> fields = DecodeFields(EncodeFields(ToFields(facts)));
    ASSERT_TRUE(fields);
    EXPECT_EQ(FactsFrom(*fields), facts);
  }
}

TEST(Facts, OfAnotherVersionMayHaveUnknownKeys) {
  Fields fields = ToFields(FullFacts());
  fields.emplace_back("colour", "red");
  EXPECT_EQ(FactsFrom(fields), FullFacts());
}

TEST(Facts, WithValuesThatAreNoneAreRefused) {
  const Fields bad[] = {{{"rank", "x"}},
                        {{"rank", ""}},
                        {{"port", "1 "}},
                        {{"rank", "99999999999"}},
                        {{"gpus", "-2"}},
                        {{"interface", "eth0"}},
                        {{"interface", "eth0 much"}},
                        {{"interface", "eth0 -1"}},
                        {{"variable", "NCCL_DEBUG"}}};
  for (const Fields& fields : bad) EXPECT_FALSE(FactsFrom(fields)) << EncodeFields(fields);
}

TEST(Facts, KnowTheInterfaceOfAnAddress) {
  const Facts facts = FullFacts();
  ASSERT_NE(InterfaceOf(facts, "10.0.0.7"), nullptr);
  EXPECT_EQ(InterfaceOf(facts, "10.0.0.7")->name, "eth0");
  EXPECT_EQ(InterfaceOf(facts, "10.0.0.8"), nullptr);
}

TEST(Fields, OfBytesThatAreNoMessageAreNone) {
  EXPECT_TRUE(DecodeFields("")->empty());
  for (const char* bytes : {"x", "x=1", "\n", "x=\\", "x=\\\n", "x=\\q\n", "x=1\ny", "x=1\ny\n"}) {
    EXPECT_FALSE(DecodeFields(bytes)) << bytes;
  }
}

// Every cut and every changed byte of a real message is read without harm, and what is read can be
// sent again.
TEST(Fields, OfDamagedBytesDoNoHarm) {
  const std::string whole = EncodeFields(ToFields(FullFacts()));
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    for (const char byte : {'\0', '\n', '=', '\\', '\xff'}) {
      changed[i] = byte;
      for (const std::string& bytes : {whole.substr(0, i), changed}) {
        const std::optional<Fields> fields = DecodeFields(bytes);
        if (!fields) continue;
        EXPECT_EQ(DecodeFields(EncodeFields(*fields)), fields);
        const std::optional<Facts> facts = FactsFrom(*fields);
        if (facts) {
          EXPECT_EQ(FactsFrom(ToFields(*facts)), facts);
        }
      }
    }
  }
}

}  // namespace
}  // namespace muster::check
