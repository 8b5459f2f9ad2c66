#include "trainer/data/open_data.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "trainer/data/mapped_file.h"
#include "trainer/data/sample_order.h"
#include "trainer/data/samples.h"
#include "trainer/data/token_file.h"

namespace everstep::trainer {
namespace {

// Keeps the file mapped as long as the tokens are used.
struct OpenFile {
  MappedFile file;
  TokenSpan tokens;
  DataFormat format = DataFormat::kAuto;  // as which it was read; never kAuto
};

struct MegatronPaths {
  std::string tokens;
  std::string index;
};

MegatronPaths megatron_paths(const std::string& path) {
  const bool has_extension = path.ends_with(".bin") || path.ends_with(".idx");
  const std::string stem = has_extension ? path.substr(0, path.size() - 4) : path;
  return {stem + ".bin", stem + ".idx"};
}

bool has_index(const std::string& path) {
  std::error_code ignored;
  return path.ends_with(".idx") ||
         (path.ends_with(".bin") && std::filesystem::exists(megatron_paths(path).index, ignored));
}

Result<OpenFile> open_megatron(const std::string& path) {
  const MegatronPaths paths = megatron_paths(path);
  auto file = MappedFile::open(paths.tokens);
  if (!file) return file.error();
  const auto index = MappedFile::open(paths.index);
  if (!index) return index.error();
  const auto tokens = read_megatron(file->bytes(), paths.tokens, index->bytes(), paths.index);
  if (!tokens) return tokens.error();
  return OpenFile{std::move(file).value(), *tokens, DataFormat::kMegatron};
}

DataFormat format_of(const DataOptions& options, const MappedFile& file) {
  if (options.format != DataFormat::kAuto) return options.format;
  return options.path.ends_with(".bin") || has_llmc_magic(file.bytes()) ? DataFormat::kBin : DataFormat::kText;
}

Result<OpenFile> open_file(const DataOptions& options) {
  const bool detect = options.format == DataFormat::kAuto;
  if (options.format == DataFormat::kMegatron || (detect && has_index(options.path)))
    return open_megatron(options.path);
  auto file = MappedFile::open(options.path);
  if (!file) return file.error();
  const DataFormat format = format_of(options, *file);
  if (format == DataFormat::kText) {
    const TokenSpan text = read_text(file->bytes());
    return OpenFile{std::move(file).value(), text, format};
  }
  const auto tokens =
      format == DataFormat::kBin ? read_bin(file->bytes(), options.path) : read_bin32(file->bytes(), options.path);
  if (!tokens) return tokens.error();
  return OpenFile{std::move(file).value(), *tokens, format};
}

class FileData final : public DataSource {
 public:
  FileData(MappedFile file, TokenSource source, Split training, Split validation, const ModelConfig& config)
      : file_(std::move(file)),
        source_(std::move(source)),
        training_(training),
        validation_(validation),
        order_(config.seed, samples_in(training, config)),
        config_(config) {}

  Result<Minibatch> training(Position position) const override {
    EVERSTEP_CHECK(position.value >= 0, "a negative position");
    const std::int64_t first = position.value * config_.minibatch;
    return collect(training_, first, [&](std::int64_t number) { return order_.at(number); });
  }

  Result<Minibatch> validation(std::int64_t index) const override {
    EVERSTEP_CHECK(index >= 0 && index < validation_minibatches(), "no validation minibatch " + std::to_string(index));
    return collect(validation_, index * config_.minibatch, [](std::int64_t number) { return number; });
  }

  std::int64_t validation_minibatches() const override { return samples_in(validation_, config_) / config_.minibatch; }

 private:
  template <typename IndexOf>
  Result<Minibatch> collect(const Split& split, std::int64_t first, IndexOf index_of) const {
    Minibatch minibatch;
    const auto elements = static_cast<std::size_t>(config_.tokens_per_minibatch());
    minibatch.tokens.reserve(elements);
    minibatch.labels.reserve(elements);
    for (std::int64_t number = first; number < first + config_.minibatch; ++number) {
      EVERSTEP_TRY(append_sample(source_, split, {index_of(number), number}, config_, minibatch));
    }
    return minibatch;
  }

  MappedFile file_;
  TokenSource source_;
  Split training_;
  Split validation_;
  SampleOrder order_;
  ModelConfig config_;
};

std::int64_t smallest_vocabulary(bool text, bool bert) {
  if (text) return bert ? kTextSpecialTokens.mask + 1 : 256;
  return bert ? kBertSpecialTokens.mask + 1 : 1;
}

Result<TokenSource> describe(const OpenFile& opened, const ModelConfig& config) {
  const bool bert = config.shape.family == scheduler::ModelFamily::kBert;
  const bool text = opened.tokens.type == TokenType::kUint8;  // whatever the file's format: ids below 256 are bytes
  const std::int64_t needed = smallest_vocabulary(text, bert);
  if (config.shape.vocabulary < needed) {
    return invalid_argument(opened.file.path() + ": its tokens need a vocabulary of " + std::to_string(needed) +
                                ", the model has " + std::to_string(config.shape.vocabulary),
                            "--vocabulary=" + std::to_string(needed));
  }
  return TokenSource{opened.file.path(), opened.tokens, config.shape.vocabulary, text ? 256 : config.shape.vocabulary,
                     text ? kTextSpecialTokens : kBertSpecialTokens};
}

struct Splits {
  Split training;
  Split validation;
};

Splits splits_of(const TokenSpan& tokens, double validation_fraction) {
  const std::int64_t size = tokens.size();
  const auto held_back = static_cast<std::int64_t>(static_cast<double>(size) * validation_fraction);
  return {{0, size - held_back, 0}, {size - held_back, size, 1}};
}

std::string format_text(const OpenFile& opened) {
  if (opened.format == DataFormat::kText) return "text, every byte a token";
  const std::string width = std::to_string(8 * size_of(opened.tokens.type)) + "-bit tokens";
  return opened.format == DataFormat::kMegatron ? "megatron, " + width : width;
}

Status check_plausible(const OpenFile& opened, bool is_detected) {
  const std::string& name = opened.file.path();
  if (opened.format == DataFormat::kText) return is_detected ? check_is_text(opened.tokens, name) : Status();
  if (opened.format != DataFormat::kBin) return {};
  if (is_detected) EVERSTEP_TRY(check_is_no_text(opened.tokens, name));
  return check_is_not_wider(opened.tokens, name);
}

Status check_options(const DataOptions& options, const ModelConfig& config) {
  EVERSTEP_CHECK(config.minibatch >= 1 && config.shape.sequence >= 1, "the model was not checked");
  if (!(options.validation_fraction >= 0 && options.validation_fraction < 1)) {
    return invalid_argument("the validation fraction must be at least 0 and below 1, not " +
                            shortest_text(options.validation_fraction));
  }
  const int shortest = config.shape.family == scheduler::ModelFamily::kBert ? 5 : 1;  // [CLS] a [SEP] b [SEP]
  if (config.shape.sequence < shortest) {
    return invalid_argument(
        "a sequence of " + std::to_string(config.shape.sequence) + " tokens has no room for a pair of sentences",
        "at least " + std::to_string(shortest));
  }
  return {};
}

}  // namespace

Result<DataFormat> parse_data_format(std::string_view word) {
  if (word == "auto") return DataFormat::kAuto;
  if (word == "text") return DataFormat::kText;
  if (word == "bin") return DataFormat::kBin;
  if (word == "bin32") return DataFormat::kBin32;
  if (word == "megatron") return DataFormat::kMegatron;
  return invalid_argument("unknown data format '" + std::string(word) + "'", "auto, text, bin, bin32 or megatron");
}

Result<std::unique_ptr<DataSource>> open_data(const DataOptions& options, const ModelConfig& config) {
  EVERSTEP_TRY(check_options(options, config));
  auto opened = open_file(options);
  if (!opened) return opened.error();
  auto source = describe(*opened, config);
  if (!source) return source.error();

  const auto [training, validation] = splits_of(opened->tokens, options.validation_fraction);
  if (samples_in(training, config) < 1) {
    return invalid_argument(opened->file.path() + ": " + std::to_string(training.size()) +
                                " tokens to train on are fewer than one sample of " +
                                std::to_string(config.shape.sequence),
                            "a longer file, or a smaller --sequence");
  }
  auto data = std::make_unique<FileData>(std::move(opened->file), std::move(*source), training, validation, config);
  if (const auto first = data->training(Position{0}); !first) return first.error();
  return std::unique_ptr<DataSource>(std::move(data));
}

Result<DataFacts> look_at_data(const DataOptions& options, const ModelConfig& config) {
  // First what it is: other complaints would be about numbers that nobody wrote.
  const auto opened = open_file(options);
  if (!opened) return opened.error();
  EVERSTEP_TRY(check_plausible(*opened, options.format == DataFormat::kAuto));
  if (const auto data = open_data(options, config); !data) return data.error();
  const auto source = describe(*opened, config);
  if (!source) return source.error();
  DataFacts facts;
  facts.format = format_text(*opened);
  facts.tokens = opened->tokens.size();
  facts.training_samples = samples_in(splits_of(opened->tokens, options.validation_fraction).training, config);
  facts.ids = ids_of(opened->tokens);
  if (const auto largest = source->token(facts.ids.place_of_largest); !largest) return largest.error();
  return facts;
}

}  // namespace everstep::trainer
