#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace everstep::trainer {

inline constexpr std::int64_t kIgnoredLabel = -100;
inline constexpr double kHiddenFraction = 0.15;  // of a BERT sample's own tokens: those to be predicted

// The input of one pass: `sequences` rows of `length` tokens, row by row.
struct Minibatch {
  int sequences = 0;
  int length = 0;
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> labels;  // kIgnoredLabel where nothing is to be predicted

  // BERT only, else empty.
  std::vector<std::int64_t> segments;  // 0 or 1 per token
  std::vector<std::int32_t> used;      // per row: tokens before the padding
  std::vector<std::int64_t> follows;   // per row: 0 if the second sentence follows the first, 1 if not

  bool operator==(const Minibatch&) const = default;
};

// The training data as a pure function of the position: any worker may ask for any minibatch at any time, and all get
// the same. Must be callable from several threads at once.
class DataSource {
 public:
  virtual ~DataSource() = default;

  // Fails with kInvalidArgument when the data itself is bad (a token id outside the vocabulary), naming file and
  // offset.
  virtual Result<Minibatch> training(Position position) const = 0;

  // Minibatch `index` of the validation split, always the same ones in the same order.
  virtual Result<Minibatch> validation(std::int64_t index) const = 0;
  virtual std::int64_t validation_minibatches() const = 0;
};

}  // namespace everstep::trainer
