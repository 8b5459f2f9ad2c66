#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "trainer/data/token_file.h"
#include "trainer/model/data_source.h"
#include "trainer/model/model_config.h"

namespace everstep::trainer {

// Token ids with a meaning of their own, for BERT.
struct SpecialTokens {
  std::int64_t pad = 0;
  std::int64_t cls = 0;
  std::int64_t sep = 0;
  std::int64_t mask = 0;
};

inline constexpr SpecialTokens kTextSpecialTokens{256, 257, 258, 259};  // the bytes are 0 … 255
inline constexpr SpecialTokens kBertSpecialTokens{0, 101, 102, 103};    // of bert-base-uncased

// A file's tokens and what is needed to speak about them.
struct TokenSource {
  std::string name;  // of the file
  TokenSpan tokens;
  std::int64_t vocabulary = 0;  // ids are below it
  std::int64_t ordinary = 0;    // ids that may stand for a hidden token are below it
  SpecialTokens special;

  // kInvalidArgument, naming file, place and id, for one outside the vocabulary.
  Result<std::int64_t> token(std::int64_t index) const;
};

// A part of the tokens that is read on its own: the training or the validation split.
struct Split {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  int random_block = 0;  // keeps the random numbers of the splits apart

  std::int64_t size() const { return end - begin; }
};

// How many samples a split has: stretches of tokens that do not overlap (but for GPT's last label).
std::int64_t samples_in(const Split& split, const ModelConfig& config);

// One row of a minibatch: stretch `index` of the split. `number` keys its random numbers.
struct SampleKey {
  std::int64_t index = 0;
  std::int64_t number = 0;
};

// Appends one row to the minibatch. A pure function of its arguments.
Status append_sample(const TokenSource& source, const Split& split, SampleKey key, const ModelConfig& config,
                     Minibatch& minibatch);

}  // namespace everstep::trainer
