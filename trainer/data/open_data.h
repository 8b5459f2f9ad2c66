#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trainer/data/plausible.h"
#include "trainer/model/data_source.h"
#include "trainer/model/model_config.h"

namespace everstep::trainer {

enum class DataFormat : std::uint8_t {
  kAuto,      // Megatron if an .idx lies beside the .bin, a token file if it looks or is called like one, else text
  kText,      // bytes are tokens
  kBin,       // a token file of nanoGPT or llm.c
  kBin32,     // 32-bit tokens and nothing else
  kMegatron,  // a pair of .bin and .idx
};

// The inverse of the flag's words: "auto", "text", "bin", "bin32", "megatron".
Result<DataFormat> parse_data_format(std::string_view word);

struct DataOptions {
  std::string path;  // of Megatron's two files either, or what their names have in common
  DataFormat format = DataFormat::kAuto;
  double validation_fraction = 0.05;  // the last tokens, never trained on; 0 = none
};

// Opens the data that the model is to be trained on. Everything that can be known beforehand is checked here: the files
// themselves, that the training split has at least one sample, that the vocabulary has room for the tokens, and the
// first minibatch. Token ids further in are checked when they are read. Order and contents depend on the model's seed,
// sizes and minibatch alone, never on the plan.
Result<std::unique_ptr<DataSource>> open_data(const DataOptions& options, const ModelConfig& config);

// What there is to train on, for people.
struct DataFacts {
  std::string format;  // "text, every byte a token", "16-bit tokens"
  std::int64_t tokens = 0;
  std::int64_t training_samples = 0;  // an epoch
  TokenIds ids;
};

// Looks at the data before a run begins, and refuses what cannot be right though it could be trained on: text that is
// none, tokens of another width, ids outside the vocabulary anywhere among those that are looked at. A format that is
// named in the options is believed where that makes sense: any bytes may be tokens.
Result<DataFacts> look_at_data(const DataOptions& options, const ModelConfig& config);

}  // namespace everstep::trainer
