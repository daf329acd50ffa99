#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

TEST(Crc32cTest, KnownValues) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);            // the check value of the catalogues
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);  // RFC 3720, B.4
}

}  // namespace
}  // namespace muster
