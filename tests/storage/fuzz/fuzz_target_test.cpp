#include <gtest/gtest.h>

#include "tests/storage/fuzz/fuzz_targets.h"

namespace everstep::storage {
namespace {

// A little of what the preset fuzz does for minutes: so every preset compiles the targets and runs them.
void run_with_changes(void (*target)(std::span<const std::byte>), const std::vector<std::string>& seeds) {
  for (const std::string& seed : seeds) {
    for (std::size_t at = 0; at < seed.size(); at += 7) {
      std::string input = seed;
      input[at] = static_cast<char>(input[at] ^ (1 << (at % 8)));
      target(std::as_bytes(std::span(input)));
    }
    target(std::as_bytes(std::span(seed)));
    target(std::as_bytes(std::span(seed).first(seed.size() / 2)));
  }
}

TEST(FuzzTarget, TakesChangedDocuments) { run_with_changes(fuzz_documents, document_seeds()); }
TEST(FuzzTarget, TakesChangedSafetensors) { run_with_changes(fuzz_safetensors, safetensors_seeds()); }
TEST(FuzzTarget, TakesChangedTensorFiles) { run_with_changes(fuzz_tensor_file, tensor_file_seeds()); }

}  // namespace
}  // namespace everstep::storage
