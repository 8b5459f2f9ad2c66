#include <algorithm>
#include <optional>
#include <string_view>

#include "trainer/data/little_endian.h"
#include "trainer/data/token_file.h"

namespace everstep::trainer {
namespace {

// The index: magic, version, type code, the two counts; then a length (int32) and a pointer (int64, in bytes) per
// sequence, and where each document begins in the list of sequences (int64), with one entry more for the end. Data sets
// with images add a mode (int8) per sequence.
constexpr std::string_view kMagic{"MMIDIDX\0\0", 9};
constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kVersionOffset = kMagic.size();
constexpr std::size_t kTypeOffset = kVersionOffset + 8;
constexpr std::size_t kSequencesOffset = kTypeOffset + 1;
constexpr std::size_t kDocumentsOffset = kSequencesOffset + 8;
constexpr std::size_t kHeaderBytes = kDocumentsOffset + 8;
constexpr std::size_t kLengthBytes = sizeof(std::int32_t);
constexpr std::size_t kPointerBytes = sizeof(std::int64_t);

struct Index {
  TokenType type = TokenType::kUint16;
  std::size_t sequences = 0;
  std::size_t documents = 0;  // entries, the end included

  std::size_t pointers_offset() const { return kHeaderBytes + sequences * kLengthBytes; }
  std::size_t documents_offset() const { return pointers_offset() + sequences * kPointerBytes; }
  std::size_t end() const { return documents_offset() + documents * kPointerBytes; }
};

std::optional<TokenType> type_of_code(std::uint8_t code) {
  switch (code) {
    case 1:
      return TokenType::kUint8;
    case 4:
      return TokenType::kInt32;
    case 5:
      return TokenType::kInt64;
    case 8:
      return TokenType::kUint16;
    default:  // int8, int16 and floating point hold no token ids
      return std::nullopt;
  }
}

Result<Index> read_header(std::span<const std::byte> bytes, const std::string& name) {
  const std::string_view start(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), kMagic.size()));
  if (start != kMagic) return invalid_argument(name + ": no Megatron index: it does not begin with MMIDIDX");
  if (bytes.size() < kHeaderBytes) {
    return invalid_argument(name + ": " + std::to_string(bytes.size()) + " bytes end inside the header of " +
                            std::to_string(kHeaderBytes));
  }
  const auto version = load<std::uint64_t>(bytes, kVersionOffset);
  if (version != kVersion) {
    return invalid_argument(name + ": version " + std::to_string(version) + " of the Megatron index",
                            "only 1 is known");
  }
  const auto code = load<std::uint8_t>(bytes, kTypeOffset);
  const auto type = type_of_code(code);
  if (!type) {
    return invalid_argument(name + ": type code " + std::to_string(code) + " is not one for token ids",
                            "uint8 (1), int32 (4), int64 (5) and uint16 (8) are");
  }
  const auto sequences = load<std::uint64_t>(bytes, kSequencesOffset);
  const auto documents = load<std::uint64_t>(bytes, kDocumentsOffset);
  // Each count alone against the size first: their sum could overflow.
  if (sequences > bytes.size() || documents > bytes.size() || Index{*type, sequences, documents}.end() > bytes.size()) {
    return invalid_argument(name + ": " + std::to_string(sequences) + " sequences and " + std::to_string(documents) +
                                " documents do not fit into its " + std::to_string(bytes.size()) + " bytes",
                            "is the file complete?");
  }
  return Index{*type, sequences, documents};
}

Status check_end(std::size_t end, const Index& index, std::size_t size, const std::string& name) {
  if (size == end || size == end + index.sequences) return {};  // without and with modes
  return invalid_argument(name + ": " + std::to_string(size - end) + " bytes too many for " +
                          std::to_string(index.sequences) + " sequences");
}

// The bytes of all sequences together.
Result<std::uint64_t> check_sequences(std::span<const std::byte> bytes, const Index& index, const std::string& name) {
  std::uint64_t offset = 0;  // below 2^31 · 8 per sequence, and a sequence takes 12 bytes of a file: no overflow
  for (std::size_t i = 0; i < index.sequences; ++i) {
    const auto length = load<std::int32_t>(bytes, kHeaderBytes + i * kLengthBytes);
    const auto pointer = load<std::int64_t>(bytes, index.pointers_offset() + i * kPointerBytes);
    const auto where = [&] { return name + ": sequence " + std::to_string(i); };
    if (length < 0) return invalid_argument(where() + " has the negative length " + std::to_string(length));
    if (pointer < 0 || static_cast<std::uint64_t>(pointer) != offset) {
      return invalid_argument(where() + " begins at byte " + std::to_string(pointer) +
                              ", not where the one before ends (" + std::to_string(offset) + ")");
    }
    offset += static_cast<std::uint64_t>(length) * size_of(index.type);
  }
  return offset;
}

Status check_documents(std::span<const std::byte> bytes, const Index& index, const std::string& name) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < index.documents; ++i) {
    const auto begin = load<std::int64_t>(bytes, index.documents_offset() + i * kPointerBytes);
    if (begin < last || begin > static_cast<std::int64_t>(index.sequences)) {
      return invalid_argument(name + ": document " + std::to_string(i) + " begins at sequence " +
                              std::to_string(begin) + ", outside " + std::to_string(last) + " to " +
                              std::to_string(index.sequences));
    }
    last = begin;
  }
  return {};
}

}  // namespace

Result<TokenSpan> read_megatron(std::span<const std::byte> tokens, const std::string& tokens_name,
                                std::span<const std::byte> index_bytes, const std::string& index_name) {
  const auto index = read_header(index_bytes, index_name);
  if (!index) return index.error();
  EVERSTEP_TRY(check_end(index->end(), *index, index_bytes.size(), index_name));
  const auto size = check_sequences(index_bytes, *index, index_name);
  if (!size) return size.error();
  EVERSTEP_TRY(check_documents(index_bytes, *index, index_name));
  if (*size != tokens.size()) {
    return invalid_argument(tokens_name + ": " + std::to_string(tokens.size()) + " bytes, but " + index_name +
                                " speaks of " + std::to_string(*size),
                            "do the two files belong together?");
  }
  return TokenSpan{index->type, tokens};
}

}  // namespace everstep::trainer
