#include <cstddef>
#include <cstdint>

#include "tests/storage/fuzz/fuzz_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  everstep::storage::fuzz_tensor_file(std::as_bytes(std::span(data, size)));
  return 0;
}
