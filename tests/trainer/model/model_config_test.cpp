#include "trainer/model/model_config.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace everstep::trainer {
namespace {

using scheduler::ModelFamily;

ModelConfig tiny(ModelFamily family) {
  ModelConfig config;
  config.shape = {"tiny", family, 2, 12, 3, 8, 20};
  return config;
}

std::vector<std::string> names_of(const ModelConfig& config, int block) {
  std::vector<std::string> names;
  for (const ParameterSpec& parameter : parameters_of(config, block)) names.push_back(parameter.name);
  return names;
}

std::set<std::string> names_of(const ModelConfig& config) {
  std::set<std::string> names;
  for (int block = 0; block < config.blocks(); ++block) {
    for (const std::string& name : names_of(config, block)) EXPECT_TRUE(names.insert(name).second) << name;
  }
  return names;
}

TEST(ModelConfig, HasAsManyParametersAsTheSchedulerEstimates) {
  for (const scheduler::ModelShape& shape : scheduler::named_models()) {
    ModelConfig config;
    config.shape = shape;
    ASSERT_TRUE(check(config).ok()) << shape.name;
    const auto estimated = scheduler::estimate_profile(shape);
    const auto profile = profile_of(config, Accumulation::kFloat, 1e12);
    ASSERT_EQ(profile.blocks.size(), estimated.blocks.size());
    EXPECT_TRUE(scheduler::check(profile).ok());
    for (std::size_t block = 0; block < profile.blocks.size(); ++block) {
      EXPECT_EQ(profile.blocks[block].parameters, estimated.blocks[block].parameters) << shape.name << " " << block;
    }
  }
}

TEST(ModelConfig, NamesGptParametersAsHuggingFaceDoes) {
  const ModelConfig config = tiny(ModelFamily::kGpt);
  EXPECT_THAT(names_of(config, 0), testing::ElementsAre("transformer.wte.weight", "transformer.wpe.weight"));
  EXPECT_THAT(names_of(config, 2),
              testing::ElementsAre("transformer.h.1.ln_1.weight", "transformer.h.1.ln_1.bias",
                                   "transformer.h.1.attn.c_attn.weight", "transformer.h.1.attn.c_attn.bias",
                                   "transformer.h.1.attn.c_proj.weight", "transformer.h.1.attn.c_proj.bias",
                                   "transformer.h.1.ln_2.weight", "transformer.h.1.ln_2.bias",
                                   "transformer.h.1.mlp.c_fc.weight", "transformer.h.1.mlp.c_fc.bias",
                                   "transformer.h.1.mlp.c_proj.weight", "transformer.h.1.mlp.c_proj.bias"));
  EXPECT_THAT(names_of(config, 3),
              testing::ElementsAre("transformer.ln_f.weight", "transformer.ln_f.bias", "lm_head.weight"));
  EXPECT_EQ(parameters_of(config, 1)[2].shape, (std::vector<std::int64_t>{12, 36}));
}

TEST(ModelConfig, NamesBertParametersAsHuggingFaceDoes) {
  ModelConfig config = tiny(ModelFamily::kBert);
  config.next_sentence = true;
  EXPECT_THAT(
      names_of(config, 0),
      testing::ElementsAre("bert.embeddings.word_embeddings.weight", "bert.embeddings.position_embeddings.weight",
                           "bert.embeddings.token_type_embeddings.weight", "bert.embeddings.LayerNorm.weight",
                           "bert.embeddings.LayerNorm.bias"));
  EXPECT_THAT(
      names_of(config),
      testing::IsSupersetOf(
          {"bert.encoder.layer.0.attention.self.query.weight", "bert.encoder.layer.0.attention.self.key.bias",
           "bert.encoder.layer.1.attention.self.value.weight", "bert.encoder.layer.1.attention.output.dense.weight",
           "bert.encoder.layer.1.attention.output.LayerNorm.bias", "bert.encoder.layer.1.intermediate.dense.weight",
           "bert.encoder.layer.1.output.dense.bias", "bert.encoder.layer.1.output.LayerNorm.bias",
           "bert.pooler.dense.weight", "cls.seq_relationship.bias", "cls.predictions.bias",
           "cls.predictions.transform.dense.weight", "cls.predictions.transform.LayerNorm.weight",
           "cls.predictions.decoder.weight"}));
  EXPECT_EQ(parameters_of(config, 1)[10].shape, (std::vector<std::int64_t>{48, 12}));
}

TEST(ModelConfig, DecaysMatricesOnlyAndStartsNormsAtOne) {
  for (const ModelFamily family : {ModelFamily::kGpt, ModelFamily::kBert}) {
    const ModelConfig config = tiny(family);
    for (int block = 0; block < config.blocks(); ++block) {
      for (const ParameterSpec& parameter : parameters_of(config, block)) {
        const bool is_matrix = parameter.shape.size() == 2;
        EXPECT_EQ(parameter.decay, is_matrix) << parameter.name;
        EXPECT_EQ(parameter.init == ParameterSpec::Init::kNormal, is_matrix) << parameter.name;
        if (parameter.name.ends_with("bias")) {
          EXPECT_EQ(parameter.init, ParameterSpec::Init::kZero) << parameter.name;
        }
      }
    }
  }
}

TEST(ModelConfig, StartsGptResidualProjectionsSmallerTheDeeperTheModel) {
  ModelConfig config = tiny(ModelFamily::kGpt);
  config.shape.layers = 8;
  const auto parameters = parameters_of(config, 3);
  EXPECT_DOUBLE_EQ(parameters[4].deviation, 0.005);
  EXPECT_DOUBLE_EQ(parameters[10].deviation, 0.005);
  EXPECT_DOUBLE_EQ(parameters[2].deviation, 0.02);
}

TEST(ModelConfig, LaysEachStageOutInAlignedPiecesThatDoNotOverlap) {
  const ModelConfig config = tiny(ModelFamily::kBert);
  const StageLayout layout = layout_of(config, 1, 4);
  std::int64_t end = 0;
  for (const StageLayout::Entry& entry : layout.entries) {
    EXPECT_EQ(entry.offset % 16, 0);
    EXPECT_GE(entry.offset, end);
    EXPECT_LT(entry.offset - end, 16);
    EXPECT_EQ(entry.parameter, parameters_of(config, entry.block)[entry.index]);
    end = entry.offset + entry.parameter.elements();
  }
  EXPECT_GE(layout.elements, end);
  EXPECT_EQ(layout.tied()->parameter.name, "cls.predictions.decoder.weight");
  EXPECT_EQ(layout_of(config, 0, 2).tied()->parameter.name, "bert.embeddings.word_embeddings.weight");
  EXPECT_EQ(layout_of(config, 1, 3).tied(), nullptr);
}

TEST(ModelConfig, ProfilesBytesByPrecisionAndAccumulation) {
  ModelConfig config = tiny(ModelFamily::kGpt);
  const auto exact = profile_of(config, Accumulation::kFixedPoint, 1e9);
  EXPECT_EQ(exact.weight_bytes, 4);
  EXPECT_EQ(exact.gradient_bytes, 8);
  EXPECT_EQ(exact.optimizer_bytes, 8);
  config.precision = Precision::kBf16;
  config.recompute = true;
  const auto half = profile_of(config, Accumulation::kFloat, 1e9);
  EXPECT_EQ(half.weight_bytes, 2);
  EXPECT_EQ(half.gradient_bytes, 4);
  EXPECT_EQ(half.optimizer_bytes, 12);
  EXPECT_EQ(half.blocks[1].output_bytes * 2, exact.blocks[1].output_bytes);
  EXPECT_NEAR(static_cast<double>(half.blocks[1].backward) / static_cast<double>(half.blocks[1].forward), 3, 0.01);
  EXPECT_LT(half.blocks[1].activation_bytes * 20, exact.blocks[1].activation_bytes);
}

// How much it is, is measured in tests/cuda_runtime.
TEST(ModelConfig, ProfilesWhatBlocksNeedWhileTheyCompute) {
  ModelConfig config = tiny(ModelFamily::kGpt);
  const auto working = [&](int block, Accumulation accumulation = Accumulation::kFloat) {
    return profile_of(config, accumulation, 1e9).blocks[static_cast<std::size_t>(block)].working_bytes;
  };
  const int head = config.blocks() - 1;
  const std::int64_t of_layer = working(1);
  const std::int64_t of_head = working(head);
  EXPECT_GT(of_layer, 0);
  EXPECT_GT(working(1, Accumulation::kFixedPoint), of_layer);
  config.shape.vocabulary *= 100;
  EXPECT_EQ(working(1), of_layer);
  EXPECT_GT(working(head), 10 * of_head);
  config.recompute = true;
  EXPECT_GT(working(1), of_layer);
}

TEST(ModelConfig, RefusesSizesThatDoNotGoTogether) {
  const auto message = [](auto change) {
    ModelConfig config = tiny(ModelFamily::kGpt);
    change(config);
    const Status status = check(config);
    return status.ok() ? std::string() : status.error().message;
  };
  EXPECT_EQ(message([](ModelConfig&) {}), "");
  EXPECT_EQ(message([](ModelConfig& c) { c.shape.heads = 5; }), "model: hidden 12 is not a multiple of heads 5");
  EXPECT_THAT(message([](ModelConfig& c) { c.dropout = 1; }), testing::HasSubstr("dropout"));
  EXPECT_THAT(message([](ModelConfig& c) { c.dropout = std::stod("nan"); }), testing::HasSubstr("dropout"));
  EXPECT_THAT(message([](ModelConfig& c) { c.minibatch = 0; }), testing::HasSubstr("minibatch is 0"));
  EXPECT_THAT(message([](ModelConfig& c) { c.shape.layers = 0; }), testing::HasSubstr("layers is 0"));
  EXPECT_THAT(message([](ModelConfig& c) { c.next_sentence = true; }), testing::HasSubstr("next-sentence"));
}

}  // namespace
}  // namespace everstep::trainer
