#include "trainer/data/samples.h"

#include <algorithm>
#include <cmath>

#include "tests/trainer/data/data_support.h"

namespace everstep::trainer {
namespace {

constexpr int kTokens = 3000;

const std::string& text() {
  static const std::string text = numbered_text(kTokens);
  return text;
}

TokenSource source_of(const ModelConfig& config) {
  return {"a.txt", read_text(as_bytes(text())), config.shape.vocabulary, 256, kTextSpecialTokens};
}

Minibatch sample(const ModelConfig& config, const Split& split, std::int64_t index, std::int64_t number) {
  Minibatch minibatch;
  const auto status = append_sample(source_of(config), split, {index, number}, config, minibatch);
  EXPECT_TRUE(status.ok());
  return minibatch;
}

// What stood in the row before tokens were hidden.
std::vector<std::int64_t> revealed(const Minibatch& row) {
  std::vector<std::int64_t> tokens = row.tokens;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (row.labels[i] != kIgnoredLabel) tokens[i] = row.labels[i];
  }
  return tokens;
}

std::vector<std::int64_t> text_at(std::int64_t begin, std::int64_t count) {
  const auto bytes = text().substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(count));
  std::vector<std::int64_t> tokens;
  for (const char byte : bytes) tokens.push_back(static_cast<unsigned char>(byte));
  return tokens;
}

TEST(Samples, GptReadsAStretchAndPredictsItsNextToken) {
  const ModelConfig config = small_gpt();
  const Split split{100, 200, 0};
  EXPECT_EQ(samples_in(split, config), 12);  // 99 tokens have a next one
  const Minibatch row = sample(config, split, 11, 0);
  EXPECT_EQ(row.sequences, 1);
  EXPECT_EQ(row.length, 8);
  EXPECT_EQ(row.tokens, text_at(188, 8));
  EXPECT_EQ(row.labels, text_at(189, 8));
  EXPECT_TRUE(row.segments.empty() && row.used.empty() && row.follows.empty());
}

TEST(Samples, AreNoneInASplitThatIsTooShort) {
  EXPECT_EQ(samples_in({0, 8, 0}, small_gpt()), 0);
  EXPECT_EQ(samples_in({0, 9, 0}, small_gpt()), 1);
  EXPECT_EQ(samples_in({5, 5, 0}, small_gpt()), 0);
  EXPECT_EQ(samples_in({0, 28, 0}, small_bert()), 0);
  EXPECT_EQ(samples_in({0, 29, 0}, small_bert()), 1);
}

TEST(Samples, BertPutsTwoSentencesBetweenItsMarks) {
  const ModelConfig config = small_bert();
  const Split split{0, kTokens, 0};
  int padded = 0;
  for (std::int64_t number = 0; number < 2000; ++number) {
    const std::int64_t index = number % samples_in(split, config);
    const Minibatch row = sample(config, split, index, number);
    const std::vector<std::int64_t> tokens = revealed(row);
    const auto used = static_cast<std::size_t>(row.used.at(0));
    ASSERT_EQ(tokens.size(), 32U);
    ASSERT_EQ(row.segments.size(), 32U);
    EXPECT_EQ(tokens[0], kTextSpecialTokens.cls);
    EXPECT_EQ(tokens[used - 1], kTextSpecialTokens.sep);
    EXPECT_EQ(std::count(tokens.begin() + used, tokens.end(), kTextSpecialTokens.pad),
              std::ssize(tokens) - row.used[0]);
    const auto cut = std::find(tokens.begin(), tokens.end(), kTextSpecialTokens.sep) - tokens.begin();
    EXPECT_GE(cut, 2);
    EXPECT_LT(cut, row.used[0] - 2);
    // Both sentences are there as they stand in the text, the second behind the first.
    std::vector<std::int64_t> words(tokens.begin() + 1, tokens.begin() + cut);
    words.insert(words.end(), tokens.begin() + cut + 1, tokens.begin() + static_cast<std::ptrdiff_t>(used) - 1);
    EXPECT_EQ(words, text_at(index * 29, std::ssize(words)));
    for (std::size_t i = 0; i < 32; ++i) {
      EXPECT_EQ(row.segments[i], static_cast<std::ptrdiff_t>(i) > cut && i < used ? 1 : 0);
    }
    EXPECT_EQ(row.follows, std::vector<std::int64_t>{0});
    padded += used < 32 ? 1 : 0;
  }
  EXPECT_NEAR(padded, 2000 * 0.1 * 27 / 28, 68);  // five standard deviations; one length in 28 is the full one
}

TEST(Samples, BertTakesHalfOfTheSecondSentencesFromElsewhere) {
  ModelConfig config = small_bert();
  config.next_sentence = true;
  const Split split{500, 1500, 0};
  int elsewhere = 0;
  for (std::int64_t number = 0; number < 1000; ++number) {
    const std::int64_t index = number % samples_in(split, config);
    const Minibatch row = sample(config, split, index, number);
    const std::vector<std::int64_t> tokens = revealed(row);
    const auto cut = std::find(tokens.begin(), tokens.end(), kTextSpecialTokens.sep) - tokens.begin();
    const std::vector<std::int64_t> second(tokens.begin() + cut + 1, tokens.begin() + row.used[0] - 1);
    const bool follows = second == text_at(500 + index * 29 + cut - 1, std::ssize(second));
    // A few bytes from elsewhere may happen to be the same.
    EXPECT_TRUE(second.size() < 6 || row.follows.at(0) == (follows ? 0 : 1));
    // Never from outside the split.
    const std::string bytes(second.begin(), second.end());
    EXPECT_NE(text().substr(500, 1000).find(bytes), std::string::npos);
    elsewhere += static_cast<int>(row.follows[0]);
  }
  EXPECT_NEAR(elsewhere, 500, 80);
}

TEST(Samples, BertHidesFifteenPercentAndMasksEightInTen) {
  const ModelConfig config = small_bert();
  const Split split{0, kTokens, 0};
  int hidden = 0;
  int masked = 0;
  int kept = 0;
  for (std::int64_t number = 0; number < 3000; ++number) {
    const Minibatch row = sample(config, split, number % samples_in(split, config), number);
    int hidden_here = 0;
    for (std::size_t i = 0; i < row.tokens.size(); ++i) {
      if (row.labels[i] == kIgnoredLabel) continue;
      ++hidden_here;
      EXPECT_LT(row.labels[i], 256);  // no mark is ever hidden
      masked += row.tokens[i] == kTextSpecialTokens.mask ? 1 : 0;
      kept += row.tokens[i] == row.labels[i] ? 1 : 0;
    }
    EXPECT_EQ(hidden_here, std::max(1L, std::lround(0.15 * (row.used[0] - 3))));
    hidden += hidden_here;
  }
  EXPECT_NEAR(static_cast<double>(masked) / hidden, 0.8, 0.02);
  EXPECT_NEAR(static_cast<double>(kept) / hidden, 0.1, 0.015);
}

TEST(Samples, ArePureFunctionsOfTheirKey) {
  const ModelConfig config = small_bert();
  const Split training{0, kTokens, 0};
  const Minibatch first = sample(config, training, 3, 40);
  EXPECT_EQ(first, sample(config, training, 3, 40));
  EXPECT_NE(first, sample(config, training, 3, 41));         // hidden anew in the next epoch
  EXPECT_NE(first, sample(config, {0, kTokens, 1}, 3, 40));  // another split, other numbers
  ModelConfig other_seed = config;
  other_seed.seed = 8;
  EXPECT_NE(first, sample(other_seed, training, 3, 40));
}

TEST(Samples, NameAnIdOutsideTheVocabulary) {
  const std::string file = FileBytes().all<std::int32_t>({5, 6, -3, 300}).str();
  const TokenSource source{"x.bin", {TokenType::kInt32, as_bytes(file)}, 256, 256, kBertSpecialTokens};
  EXPECT_EQ(*source.token(1), 6);
  EXPECT_EQ(source.token(2).error().message, "x.bin: token 2 has the id -3, outside the model's vocabulary of 256");
  EXPECT_EQ(source.token(3).error().message, "x.bin: token 3 has the id 300, outside the model's vocabulary of 256");
}

}  // namespace
}  // namespace everstep::trainer
