#include "trainer/ucx/payload_checksum.h"

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // makes XXH3_64bits choose at run time
#else
#include <xxhash.h>
#endif

namespace everstep::trainer {

std::uint64_t payload_checksum(const Buffer& payload) { return XXH3_64bits(payload.data, payload.size); }

}  // namespace everstep::trainer
