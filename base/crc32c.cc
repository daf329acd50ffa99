#include "base/crc32c.h"

#include <array>

namespace muster {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // bits in reverse order

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? kPolynomial : 0);
    table[byte] = rest;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = MakeTable();

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
  uint32_t rest = ~uint32_t{0};
  for (const char c : bytes) rest = (rest >> 8) ^ kTable[(rest ^ static_cast<uint8_t>(c)) & 0xff];
  return ~rest;
}

}  // namespace muster
