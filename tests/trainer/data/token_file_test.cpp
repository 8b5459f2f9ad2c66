#include "trainer/data/token_file.h"

#include "tests/trainer/data/data_support.h"

namespace everstep::trainer {
namespace {

std::vector<std::int64_t> ids(const TokenSpan& tokens) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < tokens.size(); ++i) all.push_back(tokens.at(i));
  return all;
}

using Ids = std::vector<std::int64_t>;

TEST(TokenFile, TakesTextByteByByte) { EXPECT_EQ(ids(read_text(as_bytes("A\xff\n"))), (Ids{65, 255, 10})); }

TEST(TokenFile, ReadsNanoGptFiles) {
  const std::string file = FileBytes().all<std::uint16_t>({50256, 0, 65535}).str();
  const auto tokens = read_bin(as_bytes(file), "a.bin");
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ(ids(*tokens), (Ids{50256, 0, 65535}));
}

TEST(TokenFile, ReadsBothKindsOfLlmcFiles) {
  const std::string small = llmc_header(20240520, 1, 2).all<std::uint16_t>({50256, 7}).str();
  const auto small_tokens = read_bin(as_bytes(small), "a.bin");
  ASSERT_TRUE(small_tokens.ok());
  EXPECT_EQ(ids(*small_tokens), (Ids{50256, 7}));

  const std::string large = llmc_header(20240801, 7, 2).all<std::uint32_t>({128000, 0xffffffff}).str();
  const auto large_tokens = read_bin(as_bytes(large), "a.bin");
  ASSERT_TRUE(large_tokens.ok());
  EXPECT_EQ(ids(*large_tokens), (Ids{128000, 0xffffffff}));
}

TEST(TokenFile, TellsLlmcFilesByTheirMagicNumber) {
  EXPECT_TRUE(has_llmc_magic(as_bytes(llmc_header(20240520, 1, 0).str())));
  EXPECT_TRUE(has_llmc_magic(as_bytes(llmc_header(20240801, 7, 0).str())));
  EXPECT_FALSE(has_llmc_magic(as_bytes(llmc_header(20240522, 1, 0).str())));
  EXPECT_FALSE(has_llmc_magic(as_bytes("abc")));
}

struct Malformed {
  std::string file;
  std::string message;
};

TEST(TokenFile, RefusesMalformedTokenFilesInOneLine) {
  const std::string whole = llmc_header(20240520, 1, 2).all<std::uint16_t>({1, 2}).str();
  const Malformed cases[] = {
      {"abc", "x.bin: 3 bytes are no whole number of uint16 tokens"},
      {whole.substr(0, 1000), "x.bin: 1000 bytes end inside the llm.c header of 1024"},
      {whole.substr(0, 4), "x.bin: 4 bytes end inside the llm.c header of 1024"},
      {whole + "?", "x.bin: the llm.c header says 2 tokens of 2 bytes, but 5 bytes follow it"},
      {whole.substr(0, 1026), "x.bin: the llm.c header says 2 tokens of 2 bytes, but 2 bytes follow it"},
      {llmc_header(20240520, 1, -1).str(), "x.bin: the llm.c header says -1 tokens of 2 bytes, but 0 bytes follow it"},
      {llmc_header(20240801, 7, INT32_MAX).str(),
       "x.bin: the llm.c header says 2147483647 tokens of 4 bytes, but 0 bytes follow it"},
      {llmc_header(20240520, 2, 0).str(),
       "x.bin: version 2 of the llm.c format, where version 1 belongs to its magic number"},
  };
  for (const Malformed& malformed : cases) {
    const auto tokens = read_bin(as_bytes(malformed.file), "x.bin");
    ASSERT_FALSE(tokens.ok()) << malformed.message;
    EXPECT_EQ(tokens.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(tokens.error().message, malformed.message);
  }
}

}  // namespace
}  // namespace everstep::trainer
