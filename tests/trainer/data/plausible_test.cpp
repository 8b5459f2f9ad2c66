// Bytes that could be trained on as something that they are not.
#include "trainer/data/plausible.h"

#include <gmock/gmock.h>

#include "tests/trainer/data/data_support.h"
#include "trainer/data/open_data.h"

namespace everstep::trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::vector<std::int64_t> some_ids(std::int64_t vocabulary, int count) {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back(i * 7919 % vocabulary);
  return ids;
}

ModelConfig with_vocabulary(int vocabulary) {
  ModelConfig config = small_gpt();
  config.shape.vocabulary = vocabulary;
  return config;
}

class LookAtDataTest : public DataFileTest {
 protected:
  static DataFacts look(const DataOptions& options, const ModelConfig& config) {
    auto facts = look_at_data(options, config);
    EXPECT_TRUE(facts) << facts.error();
    return facts ? std::move(facts).value() : DataFacts{};
  }

  static std::string refusal(const DataOptions& options, const ModelConfig& config) {
    const auto facts = look_at_data(options, config);
    return facts ? "accepted as " + facts->format : facts.error().line();
  }
};

TEST_F(LookAtDataTest, TellsWhatThereIs) {
  const DataFacts text = look({.path = write("a.txt", numbered_text(1000)), .validation_fraction = 0.2}, small_gpt());
  EXPECT_EQ(text.format, "text, every byte a token");
  EXPECT_EQ(text.tokens, 1000);
  EXPECT_EQ(text.training_samples, 799 / 8);
  EXPECT_EQ(text.ids.looked_at, 1000);
  EXPECT_EQ(text.ids.used, 11);  // digits and blanks
  EXPECT_EQ(text.ids.largest, '9');
  const std::string bin = write("a.bin", FileBytes().all<std::uint16_t>(some_ids(50'000, 900)).str());
  const DataFacts tokens = look({.path = bin}, with_vocabulary(50'257));
  EXPECT_EQ(tokens.format, "16-bit tokens");
  EXPECT_EQ(tokens.tokens, 900);
  EXPECT_EQ(tokens.ids.used, 900);
  EXPECT_LT(tokens.ids.largest, 50'000);
}

// Found by users: it was trained on, every second token a 0.
TEST_F(LookAtDataTest, RefusesTokensThatAreWiderThanTheyAreRead) {
  for (const std::int64_t vocabulary : {200, 50'000, 128'000}) {
    const std::string wide = write("wide.bin", FileBytes().all<std::uint32_t>(some_ids(vocabulary, 500)).str());
    const ModelConfig config = with_vocabulary(200'000);
    for (const DataFormat format : {DataFormat::kAuto, DataFormat::kBin}) {
      EXPECT_THAT(refusal({.path = wide, .format = format}, config),
                  AllOf(HasSubstr("wide.bin"), HasSubstr("32 or 64 bits wide"), HasSubstr("--data-format=bin32")));
    }
    EXPECT_EQ(look({.path = wide, .format = DataFormat::kBin32}, config).ids.largest,
              std::ranges::max(some_ids(vocabulary, 500)));
  }
  const std::string wider = write("wider.bin", FileBytes().all<std::int64_t>(some_ids(50'000, 500)).str());
  EXPECT_THAT(refusal({.path = wider}, with_vocabulary(50'257)), HasSubstr("32 or 64 bits wide"));
}

// Found by users: its bytes were taken for text.
TEST_F(LookAtDataTest, RefusesTokensUnderAnotherName) {
  const std::string tokens = write("train.tokens", FileBytes().all<std::uint16_t>(some_ids(50'000, 500)).str());
  EXPECT_THAT(refusal({.path = tokens}, with_vocabulary(50'257)),
              AllOf(HasSubstr("train.tokens"), HasSubstr("is none"), HasSubstr("bin (16-bit tokens)")));
  EXPECT_EQ(look({.path = tokens, .format = DataFormat::kBin}, with_vocabulary(50'257)).format, "16-bit tokens");
  EXPECT_EQ(look({.path = tokens, .format = DataFormat::kText}, with_vocabulary(256)).format,
            "text, every byte a token")
      << "who says so means it";
}

TEST_F(LookAtDataTest, TakesTextInAnyEncodingButNoControlCharacters) {
  std::string latin;
  for (int i = 0; i < 200; ++i) latin += "caf\xe9 \t\r\n";
  EXPECT_EQ(refusal({.path = write("latin.txt", latin)}, small_gpt()), "accepted as text, every byte a token");
  std::string controls = latin;
  for (std::size_t i = 0; i < controls.size(); i += 10) controls[i] = '\x02';
  EXPECT_THAT(refusal({.path = write("controls.txt", controls)}, small_gpt()), HasSubstr("control characters"));
}

TEST_F(LookAtDataTest, RefusesTextUnderTheNameOfTokens) {
  const std::string text = write("text.bin", numbered_text(1000));
  EXPECT_THAT(refusal({.path = text}, with_vocabulary(50'257)),
              AllOf(HasSubstr("plain text"), HasSubstr("--data-format=text")));
}

TEST_F(LookAtDataTest, FindsAnIdOutsideTheVocabularyBehindTheFirstMinibatch) {
  std::vector<std::int64_t> ids = some_ids(1000, 2000);
  ids[1700] = 1003;
  const std::string bin = write("a.bin", FileBytes().all<std::uint16_t>(ids).str());
  EXPECT_THAT(refusal({.path = bin}, with_vocabulary(1000)), AllOf(HasSubstr("1700"), HasSubstr("1003")));
  EXPECT_EQ(refusal({.path = bin}, with_vocabulary(1004)), "accepted as 16-bit tokens");
}

}  // namespace
}  // namespace everstep::trainer
