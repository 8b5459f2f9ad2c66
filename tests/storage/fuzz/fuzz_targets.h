#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

// What the fuzzers do with one input: any bytes must yield a value or an error. A crash, a sanitizer's finding or a
// failed CHECK is a fault; so is a value that breaks what the parser promises.
namespace everstep::storage {

void fuzz_documents(std::span<const std::byte> input);
void fuzz_safetensors(std::span<const std::byte> input);

// The bytes as they are and with checksums that fit, which no mutation would find by itself.
void fuzz_tensor_file(std::span<const std::byte> input);

// Valid inputs to start from.
std::vector<std::string> document_seeds();
std::vector<std::string> safetensors_seeds();
std::vector<std::string> tensor_file_seeds();

}  // namespace everstep::storage
