#ifndef MUSTER_BASE_CRC32C_H_
#define MUSTER_BASE_CRC32C_H_

#include <cstdint>
#include <string_view>

namespace muster {

// CRC-32C (Castagnoli): finds every change of up to 32 bits in a row, so that of each single byte.
uint32_t Crc32c(std::string_view bytes);

}  // namespace muster

#endif  // MUSTER_BASE_CRC32C_H_
