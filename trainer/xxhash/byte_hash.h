#pragma once

#include <cstdint>

#include "trainer/model/buffer.h"

namespace everstep::trainer {

// XXH3 with the widest vectors this machine has: tens of GB/s.
std::uint64_t byte_hash(const Buffer& bytes);

}  // namespace everstep::trainer
