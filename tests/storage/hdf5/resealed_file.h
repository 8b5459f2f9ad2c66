#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace everstep::storage {

std::vector<std::byte> little_endian(std::uint64_t number);

// Makes the checksums of the superblock and of all headers right again, as an attacker would. For any bytes.
void reseal(std::vector<std::byte>& file);

}  // namespace everstep::storage
