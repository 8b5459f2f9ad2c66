#include "trainer/data/token_file.h"

#include "base/check.h"
#include "trainer/data/little_endian.h"

namespace everstep::trainer {
namespace {

constexpr std::size_t kLlmcHeaderBytes = 256 * sizeof(std::int32_t);

struct LlmcKind {
  std::int32_t magic;
  std::int32_t version;
  TokenType type;
};

constexpr LlmcKind kLlmcKinds[] = {
    {20240520, 1, TokenType::kUint16},  // "gpt-2"
    {20240801, 7, TokenType::kUint32},  // "llama-3"
};

const LlmcKind* find_llmc_kind(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(std::int32_t)) return nullptr;
  for (const LlmcKind& kind : kLlmcKinds) {
    if (load<std::int32_t>(bytes, 0) == kind.magic) return &kind;
  }
  return nullptr;
}

Result<TokenSpan> read_llmc(std::span<const std::byte> bytes, const LlmcKind& kind, const std::string& name) {
  if (bytes.size() < kLlmcHeaderBytes) {
    return invalid_argument(name + ": " + std::to_string(bytes.size()) + " bytes end inside the llm.c header of " +
                            std::to_string(kLlmcHeaderBytes));
  }
  const auto version = load<std::int32_t>(bytes, 4);
  if (version != kind.version) {
    return invalid_argument(name + ": version " + std::to_string(version) + " of the llm.c format, where version " +
                            std::to_string(kind.version) + " belongs to its magic number");
  }
  const std::int64_t tokens = load<std::int32_t>(bytes, 8);
  const auto present = static_cast<std::int64_t>(bytes.size() - kLlmcHeaderBytes);
  if (tokens * static_cast<std::int64_t>(size_of(kind.type)) != present) {
    return invalid_argument(name + ": the llm.c header says " + std::to_string(tokens) + " tokens of " +
                                std::to_string(size_of(kind.type)) + " bytes, but " + std::to_string(present) +
                                " bytes follow it",
                            "is the file complete?");
  }
  return TokenSpan{kind.type, bytes.subspan(kLlmcHeaderBytes)};
}

Result<TokenSpan> read_plain(std::span<const std::byte> bytes, TokenType type, const std::string& name) {
  if (bytes.size() % size_of(type) == 0) return TokenSpan{type, bytes};
  return invalid_argument(name + ": " + std::to_string(bytes.size()) + " bytes are no whole number of uint" +
                              std::to_string(8 * size_of(type)) + " tokens",
                          "is the file complete? use --data-format=text for plain text");
}

}  // namespace

std::size_t size_of(TokenType type) {
  switch (type) {
    case TokenType::kUint8:
      return 1;
    case TokenType::kUint16:
      return 2;
    case TokenType::kUint32:
    case TokenType::kInt32:
      return 4;
    case TokenType::kInt64:
      return 8;
  }
  check_failed(__FILE__, __LINE__, "type", "no such token type");
}

std::int64_t TokenSpan::at(std::int64_t index) const {
  EVERSTEP_CHECK(index >= 0 && index < size(), "token " + std::to_string(index) + " of " + std::to_string(size()));
  const std::size_t offset = static_cast<std::size_t>(index) * size_of(type);
  switch (type) {
    case TokenType::kUint8:
      return load<std::uint8_t>(bytes, offset);
    case TokenType::kUint16:
      return load<std::uint16_t>(bytes, offset);
    case TokenType::kUint32:
      return load<std::uint32_t>(bytes, offset);
    case TokenType::kInt32:
      return load<std::int32_t>(bytes, offset);
    case TokenType::kInt64:
      return load<std::int64_t>(bytes, offset);
  }
  check_failed(__FILE__, __LINE__, "type", "no such token type");
}

TokenSpan read_text(std::span<const std::byte> bytes) { return {TokenType::kUint8, bytes}; }

bool has_llmc_magic(std::span<const std::byte> bytes) { return find_llmc_kind(bytes) != nullptr; }

Result<TokenSpan> read_bin(std::span<const std::byte> bytes, const std::string& name) {
  if (const LlmcKind* kind = find_llmc_kind(bytes)) return read_llmc(bytes, *kind, name);
  return read_plain(bytes, TokenType::kUint16, name);
}

Result<TokenSpan> read_bin32(std::span<const std::byte> bytes, const std::string& name) {
  return read_plain(bytes, TokenType::kUint32, name);
}

}  // namespace everstep::trainer
