#include <gmock/gmock.h>

#include "launcher/checkpoint/hugging_face.h"
#include "launcher/job/stored_model.h"
#include "tests/launcher/checkpoint/small_job.h"

namespace everstep::launcher {
namespace {

using storage::Json;
using testing::HasSubstr;

TEST(HuggingFaceConfig, IsReadBack) {
  for (const trainer::ModelConfig& model : {small_gpt(), small_bert(false), small_bert(true)}) {
    auto read = parse_hugging_face_config(to_text(hugging_face_config(model)));
    ASSERT_TRUE(read.ok()) << read.error();
    read->shape.name = model.shape.name;
    EXPECT_EQ(*read, model);
  }
}

TEST(HuggingFaceConfig, RefusesWhatOurBlocksDoNotCompute) {
  const auto refusal = [](const trainer::ModelConfig& model, std::string_view member, const Json& value) {
    const auto read = parse_hugging_face_config(to_text(hugging_face_config(model).set(member, value)));
    return read.ok() ? std::string("accepted") : read.error().line();
  };
  EXPECT_THAT(refusal(small_gpt(), "model_type", "llama"), HasSubstr("only gpt2 and bert"));
  EXPECT_THAT(refusal(small_gpt(), "activation_function", "relu"), HasSubstr("activation_function: only \"gelu_new\""));
  EXPECT_THAT(refusal(small_gpt(), "n_inner", 63), HasSubstr("n_inner"));
  EXPECT_EQ(refusal(small_gpt(), "n_inner", 64), "accepted");
  EXPECT_THAT(refusal(small_gpt(), "layer_norm_epsilon", 1e-6), HasSubstr("layer_norm_epsilon"));
  EXPECT_THAT(refusal(small_gpt(), "tie_word_embeddings", false), HasSubstr("tie_word_embeddings"));
  EXPECT_THAT(refusal(small_gpt(), "scale_attn_weights", false), HasSubstr("scale_attn_weights"));
  EXPECT_THAT(refusal(small_gpt(), "n_layer", 0), HasSubstr("n_layer"));
  EXPECT_THAT(refusal(small_gpt(), "n_head", 3), HasSubstr("multiple"));
  EXPECT_THAT(refusal(small_bert(true), "hidden_act", "gelu_new"), HasSubstr("hidden_act"));
  EXPECT_THAT(refusal(small_bert(true), "intermediate_size", 65), HasSubstr("intermediate_size"));
  EXPECT_THAT(refusal(small_bert(true), "type_vocab_size", 3), HasSubstr("type_vocab_size"));
  EXPECT_THAT(refusal(small_bert(true), "position_embedding_type", "relative_key"), HasSubstr("position_embedding"));
  EXPECT_FALSE(parse_hugging_face_config("{").ok());
  EXPECT_FALSE(parse_hugging_face_config("[]").ok());
}

TEST(StoredModel, IsWhatItsSettingsMake) {
  for (const trainer::ModelConfig& model : {small_gpt(), small_bert(true)}) {
    auto read = stored_model(model_settings(model));
    ASSERT_TRUE(read.ok()) << read.error();
    EXPECT_EQ(read->shape, model.shape);
    EXPECT_EQ(read->next_sentence, model.next_sentence);
  }
  trainer::ModelConfig named;
  named.shape = *scheduler::find_model("gpt2-small");
  EXPECT_EQ(setting_of(model_settings(named), "model"), "gpt2-small");
  EXPECT_EQ(setting_of(model_settings(named), "layers"), "");
  EXPECT_FALSE(stored_model({}).ok());
  EXPECT_FALSE(stored_model({{"layers", "x"}, {"model", "gpt2-tiny"}}).ok());
  EXPECT_FALSE(stored_model({{"heads", "7"}, {"model", "gpt2-tiny"}}).ok());
}

}  // namespace
}  // namespace everstep::launcher
