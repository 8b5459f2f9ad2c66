// Usage: write_fuzz_seeds DIRECTORY
//
// Writes valid inputs of each fuzzer into a directory of its name.

#include <filesystem>
#include <fstream>

#include "tests/storage/fuzz/fuzz_targets.h"

namespace {

void write(const std::filesystem::path& directory, const std::vector<std::string>& seeds) {
  std::filesystem::create_directories(directory);
  int number = 0;
  for (const std::string& seed : seeds) {
    std::ofstream(directory / ("seed-" + std::to_string(number++)), std::ios::binary) << seed;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path directory = argv[1];
  write(directory / "fuzz_documents", everstep::storage::document_seeds());
  write(directory / "fuzz_safetensors", everstep::storage::safetensors_seeds());
  write(directory / "fuzz_tensor_file", everstep::storage::tensor_file_seeds());
  return 0;
}
