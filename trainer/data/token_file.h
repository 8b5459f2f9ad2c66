#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace everstep::trainer {

// How a file stores one token id, always little-endian.
enum class TokenType : std::uint8_t { kUint8, kUint16, kUint32, kInt32, kInt64 };

std::size_t size_of(TokenType type);

// Token ids where they lie in a file. Ids are whatever the file says: check them against the vocabulary.
struct TokenSpan {
  TokenType type = TokenType::kUint8;
  std::span<const std::byte> bytes;

  std::int64_t size() const { return static_cast<std::int64_t>(bytes.size() / size_of(type)); }
  std::int64_t at(std::int64_t index) const;  // 0 <= index < size()
};

// The readers trust nothing in the bytes: what does not fit together is kInvalidArgument, and the message begins with
// `name`, the file's.

// Plain text: every byte is a token.
TokenSpan read_text(std::span<const std::byte> bytes);

// Whether the file begins like a token file of llm.c.
bool has_llmc_magic(std::span<const std::byte> bytes);

// A token file of llm.c (header of 256 int32: magic, version, tokens; then uint16 or uint32 ids), or one of nanoGPT
// (uint16 ids and nothing else).
Result<TokenSpan> read_bin(std::span<const std::byte> bytes, const std::string& name);

// 32-bit ids and nothing else.
Result<TokenSpan> read_bin32(std::span<const std::byte> bytes, const std::string& name);

// Megatron's pair of files: `index` says how `tokens` is cut into sequences and documents. All writers of this format
// put the sequences back to back, which makes the token file one stretch; other orders are refused.
Result<TokenSpan> read_megatron(std::span<const std::byte> tokens, const std::string& tokens_name,
                                std::span<const std::byte> index, const std::string& index_name);

}  // namespace everstep::trainer
