#include "trainer/xxhash/byte_hash.h"

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // makes XXH3_64bits choose at run time
#else
#include <xxhash.h>
#endif

namespace everstep::trainer {

std::uint64_t byte_hash(const Buffer& bytes) { return XXH3_64bits(bytes.data, bytes.size); }

}  // namespace everstep::trainer
