#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/temporary_directory.h"
#include "trainer/model/model_config.h"

namespace everstep::trainer {

// Bytes as a file has them, built number by number.
class FileBytes {
 public:
  template <typename Number>
  FileBytes& add(Number number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
    return *this;
  }
  FileBytes& text(std::string_view text) {
    bytes_.append(text);
    return *this;
  }
  template <typename Number>
  FileBytes& all(const std::vector<std::int64_t>& numbers) {
    for (const std::int64_t number : numbers) add(static_cast<Number>(number));
    return *this;
  }
  const std::string& str() const { return bytes_; }

 private:
  std::string bytes_;
};

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

// A header as llm.c writes it.
inline FileBytes llmc_header(std::int32_t magic, std::int32_t version, std::int32_t tokens) {
  FileBytes bytes;
  bytes.add(magic).add(version).add(tokens);
  for (int i = 3; i < 256; ++i) bytes.add(std::int32_t{0});
  return bytes;
}

// What a Megatron index says, right or wrong.
struct MegatronIndex {
  std::string magic{"MMIDIDX\0\0", 9};
  std::uint64_t version = 1;
  std::uint8_t type = 8;
  std::vector<std::int64_t> lengths;
  std::vector<std::int64_t> pointers;
  std::vector<std::int64_t> documents;
  std::int64_t sequence_count = -1;  // -1: as many as there are
  std::int64_t document_count = -1;

  std::string str() const {
    FileBytes bytes;
    bytes.text(magic).add(version).add(type);
    bytes.add(sequence_count == -1 ? std::ssize(lengths) : sequence_count);
    bytes.add(document_count == -1 ? std::ssize(documents) : document_count);
    return bytes.all<std::int32_t>(lengths).all<std::int64_t>(pointers).all<std::int64_t>(documents).str();
  }
};

// Three sequences of uint16 in two documents.
inline MegatronIndex small_megatron_index() {
  return {.lengths = {3, 0, 2}, .pointers = {0, 6, 6}, .documents = {0, 2, 3}};
}

// A directory of its own for each test, gone with it.
class DataFileTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_.file(name); }

  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }

 private:
  TemporaryDirectory directory_;
};

inline ModelConfig small_gpt() {
  ModelConfig config;
  config.shape = {"small", scheduler::ModelFamily::kGpt, 2, 16, 2, 8, 256};
  config.minibatch = 3;
  config.seed = 7;
  return config;
}

inline ModelConfig small_bert() {
  ModelConfig config = small_gpt();
  config.shape = {"small", scheduler::ModelFamily::kBert, 2, 16, 2, 32, 260};
  return config;
}

// Text in which every stretch of a few bytes tells where it stands.
inline std::string numbered_text(int bytes) {
  std::string text;
  for (int i = 0; std::ssize(text) < bytes; ++i) text += std::to_string(i) + " ";
  return text.substr(0, static_cast<std::size_t>(bytes));
}

}  // namespace everstep::trainer
