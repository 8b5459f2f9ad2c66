#pragma once

#include <memory>

#include "trainer/torch/block.h"

namespace everstep::trainer {

// One file per kind. All take and return activations as [tokens, hidden].
std::unique_ptr<Block> make_gpt_embedding();
std::unique_ptr<Block> make_gpt_block();
std::unique_ptr<Block> make_gpt_head();
std::unique_ptr<Block> make_bert_embedding();
std::unique_ptr<Block> make_bert_block();
std::unique_ptr<Block> make_bert_head(bool next_sentence);

}  // namespace everstep::trainer
