#include "trainer/data/samples.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "trainer/data/sample_order.h"
#include "trainer/model/random_key.h"

namespace everstep::trainer {
namespace {

constexpr double kShortFraction = 0.1;     // of BERT's samples, shorter than the sequence and padded
constexpr double kMaskedShare = 0.8;       // of the hidden ones: [MASK] in their place
constexpr double kReplacedShare = 0.1;     // of the hidden ones: any other token; the rest stay as they are
constexpr std::int64_t kBertSpecials = 3;  // [CLS], and [SEP] twice

bool is_bert(const ModelConfig& config) { return config.shape.family == scheduler::ModelFamily::kBert; }

// What a BERT sample is made of: `first` tokens of the stretch, then `second` tokens from `second_begin` on.
struct SentencePair {
  std::int64_t first_begin = 0;
  std::int64_t first = 0;
  std::int64_t second_begin = 0;
  std::int64_t second = 0;
  bool follows = true;
};

SentencePair choose_pair(const Split& split, SampleKey key, const ModelConfig& config) {
  enum Draw : std::uint64_t { kIsShort, kLength, kCut, kIsElsewhere, kElsewhere };
  const RandomStream random = random_stream(config.seed, RandomUse::kSentencePair, split.random_block, key.number);
  const std::int64_t longest = config.shape.sequence - kBertSpecials;
  const auto below = [&](Draw draw, std::int64_t bound) {
    return static_cast<std::int64_t>(random.below(draw, static_cast<std::uint64_t>(bound)));
  };
  const std::int64_t length = random.uniform(kIsShort) < kShortFraction ? 2 + below(kLength, longest - 1) : longest;

  SentencePair pair;
  pair.first_begin = split.begin + key.index * longest;
  pair.first = 1 + below(kCut, length - 1);
  pair.second_begin = pair.first_begin + pair.first;
  pair.second = length - pair.first;
  // Any place but the one that follows.
  const std::int64_t places = split.size() - pair.second;
  if (config.next_sentence && places > 0 && random.uniform(kIsElsewhere) < 0.5) {
    const std::int64_t elsewhere = split.begin + below(kElsewhere, places);
    pair.second_begin = elsewhere < pair.second_begin ? elsewhere : elsewhere + 1;
    pair.follows = false;
  }
  return pair;
}

// Hides a part of the row's tokens (the last of the minibatch, `first` and `second` long) and makes them its labels.
// At least one: a minibatch without labels has no loss.
void hide_tokens(const TokenSource& source, const SentencePair& pair, RandomStream random, std::int64_t row_begin,
                 Minibatch& minibatch) {
  const std::int64_t length = pair.first + pair.second;
  const auto hidden = std::max<std::int64_t>(1, std::llround(kHiddenFraction * static_cast<double>(length)));
  const Permutation order(random, length);
  for (std::int64_t i = 0; i < hidden; ++i) {
    const std::int64_t word = order.at(i);
    const std::int64_t place = row_begin + word + (word < pair.first ? 1 : 2);  // behind [CLS], or also behind [SEP]
    std::int64_t& token = minibatch.tokens[static_cast<std::size_t>(place)];
    minibatch.labels[static_cast<std::size_t>(place)] = token;
    const auto draw = static_cast<std::uint64_t>(2 * i);
    const double share = random.uniform(draw);
    if (share < kMaskedShare) {
      token = source.special.mask;
    } else if (share < kMaskedShare + kReplacedShare) {
      token = static_cast<std::int64_t>(random.below(draw + 1, static_cast<std::uint64_t>(source.ordinary)));
    }
  }
}

Status append_tokens(const TokenSource& source, std::int64_t begin, std::int64_t count,
                     std::vector<std::int64_t>& tokens) {
  for (std::int64_t i = begin; i < begin + count; ++i) {
    const auto token = source.token(i);
    if (!token) return token.error();
    tokens.push_back(*token);
  }
  return {};
}

Status append_bert(const TokenSource& source, const Split& split, SampleKey key, const ModelConfig& config,
                   Minibatch& minibatch) {
  const SentencePair pair = choose_pair(split, key, config);
  const std::size_t row_begin = minibatch.tokens.size();
  const std::size_t row_end = row_begin + static_cast<std::size_t>(config.shape.sequence);
  std::vector<std::int64_t>& tokens = minibatch.tokens;

  tokens.push_back(source.special.cls);
  EVERSTEP_TRY(append_tokens(source, pair.first_begin, pair.first, tokens));
  tokens.push_back(source.special.sep);
  minibatch.segments.resize(tokens.size(), 0);
  EVERSTEP_TRY(append_tokens(source, pair.second_begin, pair.second, tokens));
  tokens.push_back(source.special.sep);
  minibatch.segments.resize(tokens.size(), 1);
  minibatch.used.push_back(static_cast<std::int32_t>(tokens.size() - row_begin));
  minibatch.follows.push_back(pair.follows ? 0 : 1);

  tokens.resize(row_end, source.special.pad);
  minibatch.segments.resize(row_end, 0);
  minibatch.labels.resize(row_end, kIgnoredLabel);
  hide_tokens(source, pair, random_stream(config.seed, RandomUse::kMasking, split.random_block, key.number),
              static_cast<std::int64_t>(row_begin), minibatch);
  return {};
}

Status append_gpt(const TokenSource& source, const Split& split, SampleKey key, const ModelConfig& config,
                  Minibatch& minibatch) {
  const std::int64_t length = config.shape.sequence;
  const std::int64_t begin = split.begin + key.index * length;
  EVERSTEP_TRY(append_tokens(source, begin, length, minibatch.tokens));
  return append_tokens(source, begin + 1, length, minibatch.labels);
}

}  // namespace

Result<std::int64_t> TokenSource::token(std::int64_t index) const {
  const std::int64_t id = tokens.at(index);
  if (id >= 0 && id < vocabulary) return id;
  return invalid_argument(name + ": token " + std::to_string(index) + " has the id " + std::to_string(id) +
                              ", outside the model's vocabulary of " + std::to_string(vocabulary),
                          "is this the tokenizer's vocabulary, and is --data-format right?");
}

std::int64_t samples_in(const Split& split, const ModelConfig& config) {
  return is_bert(config) ? split.size() / (config.shape.sequence - kBertSpecials)
                         : std::max<std::int64_t>(0, split.size() - 1) / config.shape.sequence;
}

Status append_sample(const TokenSource& source, const Split& split, SampleKey key, const ModelConfig& config,
                     Minibatch& minibatch) {
  EVERSTEP_CHECK(key.index >= 0 && key.index < samples_in(split, config), "no sample " + std::to_string(key.index));
  ++minibatch.sequences;
  minibatch.length = config.shape.sequence;
  return is_bert(config) ? append_bert(source, split, key, config, minibatch)
                         : append_gpt(source, split, key, config, minibatch);
}

}  // namespace everstep::trainer
