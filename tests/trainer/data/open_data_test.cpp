#include "trainer/data/open_data.h"

#include <map>

#include "tests/trainer/data/data_support.h"

namespace everstep::trainer {
namespace {

class OpenDataTest : public DataFileTest {
 protected:
  static std::unique_ptr<DataSource> open(const DataOptions& options, const ModelConfig& config) {
    auto data = open_data(options, config);
    EXPECT_TRUE(data.ok()) << data.error();
    return std::move(data).value();
  }

  static std::string refusal(const DataOptions& options, const ModelConfig& config) {
    const auto data = open_data(options, config);
    return data.ok() ? "" : data.error().message;
  }
};

std::string row_text(const Minibatch& minibatch, int row) {
  const auto begin = minibatch.tokens.begin() + std::int64_t{row} * minibatch.length;
  return {begin, begin + minibatch.length};
}

TEST_F(OpenDataTest, ReadsEverySampleOnceAnEpochAcrossMinibatches) {
  const ModelConfig config = small_gpt();  // 3 rows of 8
  const std::string text = numbered_text(1000);
  const auto data = open({.path = write("a.txt", text), .validation_fraction = 0}, config);
  constexpr int kSamples = 124;  // 999 / 8; 3 epochs are 124 minibatches, and epochs end inside some
  std::map<std::string, int> seen;
  for (std::int64_t position = 0; position < kSamples; ++position) {
    const auto minibatch = data->training({position});
    ASSERT_TRUE(minibatch.ok());
    ASSERT_EQ(minibatch->sequences, 3);
    for (int row = 0; row < 3; ++row) ++seen[row_text(*minibatch, row)];
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(kSamples));
  for (int i = 0; i < kSamples; ++i) EXPECT_EQ(seen[text.substr(static_cast<std::size_t>(i) * 8, 8)], 3) << i;
}

TEST_F(OpenDataTest, GivesEveryWorkerTheSameInAnyOrder) {
  for (const ModelConfig& config : {small_gpt(), small_bert()}) {
    const DataOptions options{.path = write("a.txt", numbered_text(2000))};
    const auto one = open(options, config);
    const auto other = open(options, config);
    std::vector<Minibatch> forwards;
    for (std::int64_t position = 0; position < 50; ++position) forwards.push_back(*one->training({position}));
    for (std::int64_t position = 49; position >= 0; --position) {
      EXPECT_EQ(*other->training({position}), forwards[static_cast<std::size_t>(position)]);
    }
  }
}

// The rows are the same stream of samples whatever the size of a minibatch.
TEST_F(OpenDataTest, CountsSamplesAndNotMinibatches) {
  const DataOptions options{.path = write("a.txt", numbered_text(2000))};
  ModelConfig config = small_bert();
  config.minibatch = 1;
  const auto single = open(options, config);
  config.minibatch = 4;
  const auto batched = open(options, config);
  for (std::int64_t position = 0; position < 40; ++position) {
    const Minibatch rows = *batched->training({position});
    for (int row = 0; row < 4; ++row)
      EXPECT_EQ(row_text(rows, row), row_text(*single->training({4 * position + row}), 0));
  }
}

TEST_F(OpenDataTest, NeverTrainsOnTheValidationSplit) {
  const std::string text = numbered_text(2000);
  const DataOptions options{.path = write("a.txt", text), .validation_fraction = 0.25};
  const ModelConfig config = small_gpt();
  const auto data = open(options, config);
  EXPECT_EQ(data->validation_minibatches(), 499 / 8 / 3);
  // Every stretch of this text stands in one place only, so a row from behind the cut is not found before it.
  const std::string before = text.substr(0, 1500);
  for (std::int64_t position = 0; position < 100; ++position) {
    const Minibatch minibatch = *data->training({position});
    for (int row = 0; row < 3; ++row) {
      const auto last_label = static_cast<char>(minibatch.labels[static_cast<std::size_t>(8 * row + 7)]);
      EXPECT_NE(before.find(row_text(minibatch, row) + last_label), std::string::npos);
    }
  }
  for (std::int64_t index = 0; index < data->validation_minibatches(); ++index) {
    const Minibatch minibatch = *data->validation(index);
    EXPECT_EQ(minibatch, *data->validation(index));
    for (int row = 0; row < 3; ++row) {
      const auto begin = static_cast<std::size_t>(1500 + (index * 3 + row) * 8);
      EXPECT_EQ(row_text(minibatch, row), text.substr(begin, 8));
    }
  }
  EXPECT_EQ(open({.path = options.path, .validation_fraction = 0}, config)->validation_minibatches(), 0);
}

TEST_F(OpenDataTest, TellsTheFormatsApart) {
  ModelConfig config = small_gpt();
  config.shape.vocabulary = 70000;
  config.minibatch = 1;
  std::vector<std::int64_t> ids;
  for (int i = 0; i < 9; ++i) ids.push_back(60000 + i);
  const auto first_token = [&](const std::string& file, DataFormat format) {
    const auto data = open({.path = file, .format = format, .validation_fraction = 0}, config);
    return data->training({0})->tokens.at(0);
  };
  const FileBytes plain = FileBytes().all<std::uint16_t>(ids);
  EXPECT_EQ(first_token(write("nano.bin", plain.str()), DataFormat::kAuto), 60000);
  EXPECT_EQ(first_token(write("nano.dat", plain.str()), DataFormat::kBin), 60000);
  EXPECT_EQ(first_token(write("nano.dat", plain.str()), DataFormat::kAuto), 60000 % 256);
  EXPECT_EQ(first_token(path("nano.bin"), DataFormat::kText), 60000 % 256);
  EXPECT_EQ(
      first_token(write("llmc.dat", llmc_header(20240801, 7, 9).all<std::uint32_t>(ids).str()), DataFormat::kAuto),
      60000);
  write("pair.bin", FileBytes().all<std::int32_t>(ids).str());
  write("pair.idx", MegatronIndex{.type = 4, .lengths = {9}, .pointers = {0}, .documents = {0, 1}}.str());
  EXPECT_EQ(first_token(path("pair.bin"), DataFormat::kAuto), 60000);
  EXPECT_EQ(first_token(path("pair.idx"), DataFormat::kAuto), 60000);
  EXPECT_EQ(first_token(path("pair"), DataFormat::kMegatron), 60000);
}

TEST_F(OpenDataTest, RefusesDataThatDoesNotSuitTheModel) {
  const std::string text = write("a.txt", numbered_text(1000));
  ModelConfig gpt = small_gpt();
  gpt.shape.vocabulary = 255;
  EXPECT_EQ(refusal({.path = text}, gpt), text + ": its tokens need a vocabulary of 256, the model has 255");
  ModelConfig bert = small_bert();
  bert.shape.vocabulary = 259;
  EXPECT_EQ(refusal({.path = text}, bert), text + ": its tokens need a vocabulary of 260, the model has 259");
  bert.shape.vocabulary = 103;
  const std::string bin = write("a.bin", std::string(1000, '\1'));
  EXPECT_EQ(refusal({.path = bin}, bert), bin + ": its tokens need a vocabulary of 104, the model has 103");
  bert = small_bert();
  bert.shape.sequence = 4;
  EXPECT_EQ(refusal({.path = text}, bert), "a sequence of 4 tokens has no room for a pair of sentences");
  const std::string tiny = write("tiny.txt", "12345678");
  EXPECT_EQ(refusal({.path = tiny, .validation_fraction = 0}, small_gpt()),
            tiny + ": 8 tokens to train on are fewer than one sample of 8");
  EXPECT_EQ(refusal({.path = text, .validation_fraction = 1}, small_gpt()),
            "the validation fraction must be at least 0 and below 1, not 1");
}

TEST_F(OpenDataTest, FindsAnIdOutsideTheVocabularyAtOnceOrWhenItIsRead) {
  ModelConfig config = small_gpt();
  config.shape.vocabulary = 1000;
  config.minibatch = 1;
  std::vector<std::int64_t> ids(801, 5);
  ids[400] = 1000;
  const std::string file = write("a.bin", FileBytes().all<std::uint16_t>(ids).str());
  const std::string message = file + ": token 400 has the id 1000, outside the model's vocabulary of 1000";
  const auto data = open({.path = file, .validation_fraction = 0}, config);
  int refused = 0;
  for (std::int64_t position = 0; position < 100; ++position) {
    const auto minibatch = data->training({position});
    if (minibatch.ok()) continue;
    EXPECT_EQ(minibatch.error().message, message);
    ++refused;
  }
  EXPECT_EQ(refused, 2);  // as a token, and as the label of the sample before

  const std::string all_bad = write("b.bin", std::string(1600, '\xff'));
  EXPECT_NE(refusal({.path = all_bad}, config).find("has the id 65535, outside the model's vocabulary"),
            std::string::npos);
}

TEST_F(OpenDataTest, HandsOnWhatIsWrongWithTheFiles) {
  EXPECT_EQ(open_data({.path = path("none")}, small_gpt()).error().code, ErrorCode::kNotFound);
  const std::string bin = write("pair.bin", "1234567890");
  EXPECT_EQ(open_data({.path = bin, .format = DataFormat::kMegatron}, small_gpt()).error().code, ErrorCode::kNotFound);
  write("pair.idx", "nonsense");
  EXPECT_EQ(refusal({.path = bin}, small_gpt()),
            path("pair.idx") + ": no Megatron index: it does not begin with MMIDIDX");
}

TEST(DataFormat, HasOneWordPerFormat) {
  EXPECT_EQ(*parse_data_format("auto"), DataFormat::kAuto);
  EXPECT_EQ(*parse_data_format("text"), DataFormat::kText);
  EXPECT_EQ(*parse_data_format("bin"), DataFormat::kBin);
  EXPECT_EQ(*parse_data_format("bin32"), DataFormat::kBin32);
  EXPECT_EQ(*parse_data_format("megatron"), DataFormat::kMegatron);
  EXPECT_EQ(parse_data_format("Text").error().line(),
            "unknown data format 'Text' (hint: auto, text, bin, bin32 or megatron)");
}

}  // namespace
}  // namespace everstep::trainer
