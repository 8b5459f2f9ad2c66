#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "storage/json/json.h"
#include "trainer/model/model_config.h"

namespace everstep::launcher {

// What transformers finds in config.json: GPT2LMHeadModel, BertForPreTraining, or BertForMaskedLM without the
// next-sentence head.
storage::Json hugging_face_config(const trainer::ModelConfig& model);

// The model that such a file describes. Refuses, naming the member, whatever would compute something else than our
// blocks do.
Result<trainer::ModelConfig> parse_hugging_face_config(std::string_view text);

// The names under which files hold a parameter of ours, the usual one first: without the model's prefix, and norms in
// BERT's first files.
std::vector<std::string> hugging_face_names(const std::string& parameter);

}  // namespace everstep::launcher
