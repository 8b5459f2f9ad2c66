#include <limits>

#include "base/random.h"
#include "tests/trainer/data/data_support.h"
#include "trainer/data/token_file.h"

namespace everstep::trainer {
namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

const std::string& small_tokens() {
  static const std::string tokens = FileBytes().all<std::uint16_t>({1, 2, 3, 4, 60000}).str();
  return tokens;
}

Result<TokenSpan> read_small(const std::string& index) {
  return read_megatron(as_bytes(small_tokens()), "x.bin", as_bytes(index), "x.idx");
}

TEST(MegatronFile, ReadsTheTokensOfAllSequencesAsOneStretch) {
  const auto tokens = read_small(small_megatron_index().str());
  ASSERT_TRUE(tokens.ok()) << tokens.error();
  ASSERT_EQ(tokens->size(), 5);
  EXPECT_EQ(tokens->at(0), 1);
  EXPECT_EQ(tokens->at(4), 60000);
}

TEST(MegatronFile, AcceptsTheModesOfMultimodalData) {
  EXPECT_TRUE(read_small(small_megatron_index().str() + std::string(3, '\0')).ok());
}

TEST(MegatronFile, ReadsEveryIntegerTypeThatWritersUse) {
  const auto read_first = [](std::uint8_t type, const FileBytes& tokens) {
    const std::string index = MegatronIndex{.type = type, .lengths = {1}, .pointers = {0}, .documents = {0, 1}}.str();
    const auto span = read_megatron(as_bytes(tokens.str()), "x.bin", as_bytes(index), "x.idx");
    return span.ok() ? span->at(0) : -1;
  };
  EXPECT_EQ(read_first(1, FileBytes().add(std::uint8_t{200})), 200);
  EXPECT_EQ(read_first(4, FileBytes().add(std::int32_t{70000})), 70000);
  EXPECT_EQ(read_first(5, FileBytes().add(std::int64_t{70001})), 70001);
  EXPECT_EQ(read_first(8, FileBytes().add(std::uint16_t{65535})), 65535);
}

struct Malformed {
  std::string index;
  std::string message;
};

template <typename Change>
std::string changed(Change change) {
  MegatronIndex index = small_megatron_index();
  change(index);
  return index.str();
}

std::vector<Malformed> malformed_indices() {
  const std::string whole = small_megatron_index().str();
  return {
      {"", "x.idx: no Megatron index: it does not begin with MMIDIDX"},
      {changed([](auto& index) { index.magic[0] = 'X'; }), "x.idx: no Megatron index: it does not begin with MMIDIDX"},
      {whole.substr(0, 20), "x.idx: 20 bytes end inside the header of 34"},
      {changed([](auto& index) { index.version = 2; }), "x.idx: version 2 of the Megatron index"},
      {changed([](auto& index) { index.type = 7; }), "x.idx: type code 7 is not one for token ids"},
      {changed([](auto& index) { index.type = 0; }), "x.idx: type code 0 is not one for token ids"},
      {whole.substr(0, whole.size() - 1), "x.idx: 3 sequences and 3 documents do not fit into its 93 bytes"},
      {whole + "?", "x.idx: 1 bytes too many for 3 sequences"},
      {changed([](auto& index) { index.sequence_count = kHuge; }),
       "x.idx: 9223372036854775807 sequences and 3 documents do not fit into its 94 bytes"},
      {changed([](auto& index) { index.document_count = kHuge / 8 + 1; }),  // times 8 it is 0 again
       "x.idx: 3 sequences and 1152921504606846976 documents do not fit into its 94 bytes"},
      {changed([](auto& index) { index.lengths[1] = -1; }), "x.idx: sequence 1 has the negative length -1"},
      {changed([](auto& index) { index.pointers[0] = -2; }),
       "x.idx: sequence 0 begins at byte -2, not where the one before ends (0)"},
      {changed([](auto& index) { index.pointers[2] = kHuge; }),
       "x.idx: sequence 2 begins at byte 9223372036854775807, not where the one before ends (6)"},
      {changed([](auto& index) { index.documents[1] = 4; }), "x.idx: document 1 begins at sequence 4, outside 0 to 3"},
      {changed([](auto& index) { index.documents[2] = 1; }), "x.idx: document 2 begins at sequence 1, outside 2 to 3"},
      {changed([](auto& index) { index.lengths[2] = 3; }), "x.bin: 10 bytes, but x.idx speaks of 12"},
      {changed([](auto& index) { index.lengths[2] = 1; }), "x.bin: 10 bytes, but x.idx speaks of 8"},
  };
}

TEST(MegatronFile, RefusesMalformedIndicesInOneLine) {
  for (const Malformed& malformed : malformed_indices()) {
    const auto tokens = read_small(malformed.index);
    ASSERT_FALSE(tokens.ok()) << malformed.message;
    EXPECT_EQ(tokens.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(tokens.error().message, malformed.message);
  }
}

// Flips bits and cuts ends. Whatever is still accepted must be readable to its last token.
TEST(MegatronFile, SurvivesDamageAnywhere) {
  constexpr std::uint64_t kRuns = 20'000;
  const std::string whole = small_megatron_index().str();
  const RandomStream random(2026, 1);
  std::uint64_t accepted = 0;
  for (std::uint64_t run = 0; run < kRuns; ++run) {
    std::string index = whole;
    const std::uint64_t flips = 1 + random.below(8 * run, 3);
    for (std::uint64_t flip = 0; flip < flips; ++flip) {
      const std::uint64_t bits = random.bits(8 * run + 1 + flip);
      index[bits % index.size()] ^= static_cast<char>(1U << (bits >> 32) % 8);
    }
    if (random.below(8 * run + 5, 4) == 0) index.resize(random.below(8 * run + 6, index.size()));
    const auto tokens = read_small(index);
    if (!tokens.ok()) continue;
    ++accepted;
    for (std::int64_t i = 0; i < tokens->size(); ++i) EXPECT_GE(tokens->at(i), 0);
  }
  EXPECT_LT(accepted, kRuns / 10);
}

}  // namespace
}  // namespace everstep::trainer
