#pragma once

#include <cstdint>

#include "trainer/buffer.h"

namespace everstep::trainer {

// XXH3 with the widest vectors this machine has: tens of GB/s.
std::uint64_t payload_checksum(const Buffer& payload);

}  // namespace everstep::trainer
