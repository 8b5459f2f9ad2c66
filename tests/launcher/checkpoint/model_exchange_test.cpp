#include <filesystem>

#include <gmock/gmock.h>

#include "storage/json/json.h"
#include "storage/json/safetensors.h"
#include "storage/posix/posix_file_system.h"
#include "tests/launcher/checkpoint/small_job.h"
#include "tests/launcher/commands/command_run.h"

namespace everstep::launcher {
namespace {

using storage::Json;
using testing::HasSubstr;

class ModelExchange : public CommandFiles {
 protected:
  CommandRun run(const std::string& part, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"checkpoint", part, "--checkpoint-dir=" + path("checkpoints")};
    all.insert(all.end(), more.begin(), more.end());
    return run_command(all);
  }

  // Exports a checkpoint of the model, imports it as another job, and compares the weights.
  void expect_round_trip(const trainer::ModelConfig& model) {
    SmallJob job(path("checkpoints"), model);
    job.commit({.step = 3, .kind = trainer::CutKind::kLive});
    const CommandRun exported = run("export", {"--output=" + path("model")});
    ASSERT_EQ(exported.exit_code, 0) << exported.log;
    const CommandRun imported = run("import", {"--job=copy", "--input=" + path("model")});
    ASSERT_EQ(imported.exit_code, 0) << imported.log;
    EXPECT_EQ(imported.log, "");
    EXPECT_THAT(imported.out, HasSubstr("everstep train --workers=N --data=PATH --resume --checkpoint-dir="));
    EXPECT_THAT(imported.out, HasSubstr(" --job=copy --"));
    EXPECT_THAT(imported.out, HasSubstr(" --hidden=16 "));
    EXPECT_EQ(run("verify", {"--job=copy"}).exit_code, 0);

    const CommandRun compared = run("diff", {"3", "0", "--other-job=copy", "--only=tensors", "--json"});
    EXPECT_EQ(compared.exit_code, 1) << compared.out << compared.log;
    const auto found = storage::parse_json(compared.out);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(*found->find("kinds")->find("weights")->find("different"), Json(0));
    EXPECT_NE(*found->find("kinds")->find("optimizer")->find("different"), Json(0));
  }

  // The content of the exported weights.
  storage::SafetensorsFile exported() const {
    const auto files = storage::open_posix_file_system(path("model"), false);
    const auto weights = (*files)->open("model.safetensors");
    EXPECT_TRUE(weights.ok());
    return *storage::read_safetensors_header(**weights);
  }
};

TEST_F(ModelExchange, GptKeepsItsWeights) { expect_round_trip(small_gpt()); }
TEST_F(ModelExchange, BertKeepsItsWeights) { expect_round_trip(small_bert(false)); }
TEST_F(ModelExchange, BertWithItsSecondHeadKeepsItsWeights) { expect_round_trip(small_bert(true)); }

TEST_F(ModelExchange, ExportHasTheNamesOfHuggingFaceAndNoTiedCopy) {
  SmallJob job(path("checkpoints"), small_gpt());
  job.commit({.step = 1});
  ASSERT_EQ(run("export", {"1", "--output=" + path("model"), "--format=safetensors"}).exit_code, 0);
  const storage::SafetensorsFile content = exported();
  EXPECT_EQ(content.entries.size(), 28U);
  ASSERT_NE(content.find("transformer.h.1.attn.c_attn.weight"), nullptr);
  EXPECT_EQ(content.find("transformer.h.1.attn.c_attn.weight")->tensor.shape, (std::vector<std::int64_t>{16, 48}));
  EXPECT_EQ(content.find("lm_head.weight"), nullptr);
  const auto config = storage::parse_json(text_of("model/config.json"));
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(*config->find("architectures"), Json(Json::Array{"GPT2LMHeadModel"}));
  EXPECT_EQ(*config->find("activation_function"), Json("gelu_new"));
  EXPECT_EQ(*config->find("n_positions"), Json(8));
  EXPECT_EQ(*config->find("eos_token_id"), Json(nullptr));
}

TEST_F(ModelExchange, ExportOverwritesNothingAndLeavesNothingHalfDone) {
  SmallJob job(path("checkpoints"), small_gpt());
  const auto entry = job.commit({.step = 1});
  std::filesystem::create_directory(path("model"));
  file("model/config.json", "precious");
  const CommandRun refused = run("export", {"--output=" + path("model")});
  EXPECT_EQ(refused.exit_code, 78);
  EXPECT_THAT(refused.log, HasSubstr("config.json is there already"));
  EXPECT_EQ(text_of("model/config.json"), "precious");

  std::filesystem::resize_file(job.path_of_file(entry, 2, storage::StateKind::kWeights), 100);
  EXPECT_EQ(run("export", {"--output=" + path("other")}).exit_code, 65);
  EXPECT_TRUE(std::filesystem::is_empty(path("other")));
}

TEST_F(ModelExchange, ImportRefusesWhatDoesNotFit) {
  SmallJob job(path("checkpoints"), small_gpt());
  job.commit({.step = 1});
  ASSERT_EQ(run("export", {"--output=" + path("model")}).exit_code, 0);
  const auto refusal = [&](std::vector<std::string> more, int exit_code) {
    more.insert(more.begin(), "--job=copy");
    const CommandRun ended = run("import", more);
    EXPECT_EQ(ended.exit_code, exit_code) << ended.log;
    EXPECT_FALSE(std::filesystem::exists(path("checkpoints/copy"))) << "something was left behind";
    return ended.log;
  };
  const std::string input = "--input=" + path("model");
  const std::string weights = input + "/model.safetensors";
  EXPECT_THAT(refusal({}, 64), HasSubstr("--input is missing"));
  EXPECT_THAT(refusal({"--input=" + path("none")}, 64), HasSubstr("none"));
  EXPECT_THAT(refusal({"--input=" + path("model/config.json")}, 64), HasSubstr("no safetensors file"));
  EXPECT_THAT(refusal({input, "--layers=3"}, 64), HasSubstr("--layers=3: is taken from config.json"));
  EXPECT_THAT(refusal({weights, "--model=gpt2-small"}, 64), HasSubstr("the model's is 50257x768"));
  EXPECT_THAT(refusal({weights, "--model=gpt5"}, 64), HasSubstr("gpt5"));
  const std::vector<std::string> sizes{"--model=gpt2-tiny", "--hidden=16", "--heads=2", "--sequence=8",
                                       "--vocabulary=32"};
  std::vector<std::string> deeper{weights, "--layers=3"};
  deeper.insert(deeper.end(), sizes.begin(), sizes.end());
  EXPECT_THAT(refusal(deeper, 64), HasSubstr("transformer.h.2.ln_1.weight is not there"));

  std::vector<std::string> right{"--job=copy", weights, "--layers=2"};
  right.insert(right.end(), sizes.begin(), sizes.end());
  EXPECT_EQ(run("import", right).exit_code, 0) << run("import", right).log;
  EXPECT_THAT(run("import", right).log, HasSubstr("has checkpoints already"));
}

TEST_F(ModelExchange, ImportFindsOlderNamesAndRefusesUntiedHeads) {
  SmallJob job(path("checkpoints"), small_bert(false));
  job.commit({.step = 1});
  ASSERT_EQ(run("export", {"--output=" + path("model")}).exit_code, 0);
  const storage::SafetensorsFile content = exported();
  const std::string original = text_of("model/model.safetensors");

  // Writes the same tensors under other names, and one more.
  const auto rewrite = [&](char changed) {
    std::filesystem::remove(path("model/model.safetensors"));
    std::vector<storage::TensorSpec> specs;
    std::vector<std::string> bytes;
    for (const auto& entry : content.entries) {
      storage::TensorSpec spec = entry.tensor;
      if (spec.name.starts_with("bert.")) spec.name.erase(0, 5);
      if (spec.name.ends_with("LayerNorm.weight")) spec.name.replace(spec.name.size() - 6, 6, "gamma");
      if (spec.name.ends_with("LayerNorm.bias")) spec.name.replace(spec.name.size() - 4, 4, "beta");
      specs.push_back(spec);
      bytes.push_back(original.substr(entry.offset, spec.bytes()));
    }
    specs.push_back({"cls.predictions.decoder.weight", storage::ElementType::kFloat32, {32, 16}});
    bytes.push_back(bytes.front());
    bytes.back().front() = static_cast<char>(bytes.back().front() ^ changed);
    specs.push_back({"extra", storage::ElementType::kFloat32, {1}});
    bytes.emplace_back("1234");
    const auto files = storage::open_posix_file_system(path("model"), false);
    return storage::write_safetensors(**files, "model.safetensors", specs, [&](std::size_t i) {
      return Result<std::span<const std::byte>>(std::as_bytes(std::span(bytes[i])));
    });
  };
  ASSERT_TRUE(rewrite(1).ok());
  const CommandRun untied = run("import", {"--job=untied", "--input=" + path("model")});
  EXPECT_EQ(untied.exit_code, 78);
  EXPECT_THAT(untied.log, HasSubstr("cls.predictions.decoder.weight and"));
  for (const auto& left : std::filesystem::directory_iterator(path("checkpoints/untied"))) {
    EXPECT_EQ(left.path().filename(), "LOCK") << "files were left behind";
  }

  ASSERT_TRUE(rewrite(0).ok());
  const CommandRun imported = run("import", {"--job=old", "--input=" + path("model")});
  EXPECT_EQ(imported.exit_code, 0) << imported.log;
  EXPECT_THAT(imported.log, HasSubstr("event=tensor_ignored name=extra"));
  const CommandRun compared = run("diff", {"1", "0", "--other-job=old", "--only=tensors"});
  EXPECT_THAT(compared.out, testing::ContainsRegex("weights +[0-9]+ +0\n"));
}

}  // namespace
}  // namespace everstep::launcher
