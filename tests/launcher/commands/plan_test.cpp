#include <algorithm>

#include <gmock/gmock.h>

#include "launcher/cli/host.h"
#include "launcher/job/plan_request.h"
#include "launcher/job/profile_file.h"
#include "launcher/job/train_plan.h"
#include "storage/json/json.h"
#include "storage/json/json_reader.h"
#include "tests/launcher/commands/command_run.h"
#include "tests/launcher/job/train_config.h"

namespace everstep::launcher {
namespace {

using testing::HasSubstr;

using PlanCommand = CommandFiles;

constexpr const char* kProfile = R"({
  "name": "mine", "tokens_per_minibatch": 512, "weight_bytes": 4, "gradient_bytes": 4, "optimizer_bytes": 8,
  "blocks": [
    {"name": "embedding", "parameters": 1000, "forward_ms": 0.5, "backward_ms": 1},
    {"name": "block", "repeat": 6, "parameters": 2000, "forward_ms": 1, "backward_ms": 2.5,
     "activation_bytes": 300, "working_bytes": 50, "output_bytes": 40},
    {"name": "head", "parameters": 1000, "forward_ms": 2, "backward_ms": 4}
  ]
})";

TEST_F(PlanCommand, ExplainsThePlanItChose) {
  const CommandRun run = run_command({"plan", "--workers=8", "--device=gpu", "--model=gpt-1.56b", "--precision=bf16",
                                      "--window=128", "--memory-gib=40", "--per-host=2"});
  EXPECT_EQ(run.exit_code, 0) << run.log;
  EXPECT_THAT(run.out, HasSubstr("plan       clockwork D=2 P=1 W=4\n"));
  EXPECT_THAT(run.out,
              HasSubstr("survives   any 3 workers, any 3 hosts, lost at once, without touching disk; workers "));
  EXPECT_THAT(run.out, HasSubstr("why        clockwork D=2 P=1 W=4 is the fastest that fits; next comes "));
  EXPECT_THAT(run.out, HasSubstr("block 25 … head"));
}

TEST_F(PlanCommand, SaysHowClockworkUsesItsDevices) {
  std::vector<std::string> args{"plan",           "--workers=8", "--device=gpu",         "--model=gpt-1.56b",
                                "--window=128",   "--depth=8",   "--schedule=clockwork", "--precision=bf16",
                                "--link-gbit=400"};
  const CommandRun run = run_command(args);
  EXPECT_EQ(run.exit_code, 0) << run.log;
  EXPECT_THAT(run.out, HasSubstr("plan       clockwork D=8 P=4 W=1\n"));
  EXPECT_THAT(run.out, HasSubstr("pipelines  4: a group has 4 replicas of each stage, and at most 2 minibatches in "
                                 "flight at stage 0 of a pipeline\n"));
  args.emplace_back("--json");
  const auto json = storage::parse_json(run_command(args).out);
  ASSERT_TRUE(json.ok()) << json.error();
  EXPECT_TRUE(storage::JsonReader(*json).member("plan")->integer_at("lag").ok());
}

TEST_F(PlanCommand, PrintsTheSameAsJson) {
  const CommandRun run = run_command({"plan", "--workers=9", "--previous-workers=8", "--json"});
  const auto json = storage::parse_json(run.out);
  ASSERT_TRUE(json.ok()) << json.error();
  const storage::JsonReader plan = *storage::JsonReader(*json).member("plan");
  const std::int64_t used = *plan.integer_at("depth") * *plan.integer_at("width");
  const auto seats = storage::JsonReader(*json).elements_at("seats");
  const auto spares = storage::JsonReader(*json).elements_at("spares");
  EXPECT_EQ(std::ssize(*seats), used);
  EXPECT_EQ(std::ssize(*seats) + std::ssize(*spares), 9);
  EXPECT_TRUE(plan.integer_at("moved_bytes").ok());
}

TEST_F(PlanCommand, TakesAMeasuredProfile) {
  const CommandRun run = run_command({"plan", "--workers=4", "--depth=4", "--profile=" + file("mine.json", kProfile)});
  EXPECT_EQ(run.exit_code, 0) << run.log;
  EXPECT_THAT(run.out, HasSubstr("model      mine, 8 blocks\n"));
  EXPECT_THAT(run.out, HasSubstr("plan       clockwork D=4 P=2 W=1\n"));
}

TEST_F(PlanCommand, AnswersBadInputWithOneLineAndTheRightExitCode) {
  const std::string broken = "--profile=" + file("broken.json", "{\"name\": \"x\",\n \"blocks\": 7}");
  const std::string zero = "--profile=" + file("zero.json", R"({"name": "x", "blocks": [
      {"name": "b", "forward_ms": 0, "backward_ms": 1}]})");
  const auto usage = [](std::vector<std::string> args) { return failure_of(args, 64); };
  const auto configuration = [](std::vector<std::string> args) { return failure_of(args, 78); };
  EXPECT_THAT(usage({"plan", "--workers=0"}), HasSubstr("--workers=0: expected an integer from 1 to 16384"));
  EXPECT_THAT(usage({"plan", "--workers=-3"}), HasSubstr("--workers=-3: expected an integer from 1 to 16384"));
  EXPECT_THAT(usage({"plan"}), HasSubstr("--workers is missing"));
  EXPECT_THAT(usage({"plan", "--workers=2", "--model=gpt5"}),
              HasSubstr("--model=gpt5: unknown model (hint: one of gpt2-tiny"));
  EXPECT_THAT(usage({"plan", "--workers=2", "--model=gpt2"}), HasSubstr("did you mean gpt2-small?"));
  EXPECT_THAT(usage({"plan", "--workers=2", "--kind=amdp"}), HasSubstr("did you mean --schedule?"));
  EXPECT_THAT(usage({"plan", "--workers=2", "--schedule=amdq"}), HasSubstr("--schedule=amdq: unknown schedule kind"));
  EXPECT_THAT(usage({"plan", "--workers=2", "--profile=" + path("missing.json")}), HasSubstr("missing.json"));
  EXPECT_THAT(configuration({"plan", "--workers=2", "--memory-gib=0.25", "--model=gpt2-xl"}),
              HasSubstr("no plan fits into 0.25 GiB per worker"));
  EXPECT_THAT(configuration({"plan", "--workers=32", "--depth=15"}),
              HasSubstr("depth 15 needs more stages than the model has blocks (10)"));
  EXPECT_THAT(configuration({"plan", "--workers=3", "--depth=3", "--schedule=amdp"}),
              HasSubstr("AMDP needs a depth of 2 or a multiple of 4"));
  EXPECT_THAT(configuration({"plan", "--workers=2", broken}), HasSubstr("blocks: expected an array"));
  EXPECT_THAT(configuration({"plan", "--workers=2", zero}), HasSubstr("block 0 ('b'): forward time in ns is 0"));
}

TEST_F(PlanCommand, RefusesWhatAMeasuredProfileSaysAlready) {
  const std::string profile = "--profile=" + file("mine.json", kProfile);
  for (const char* option : {"--minibatch=8", "--model=gpt2-xl", "--layers=3", "--tflops=3", "--reproducible"}) {
    EXPECT_THAT(failure_of({"plan", "--workers=2", profile, option}, 64), HasSubstr("does not go with --profile"));
  }
}

// Whatever options both have: the plan that is told is the plan that would run.
TEST_F(PlanCommand, TellsWhatTrainWouldRun) {
  const std::vector<std::vector<std::string>> wishes{
      {"--workers=1"},
      {"--workers=4"},
      {"--workers=7", "--window=30", "--redundancy=2"},
      {"--workers=8", "--schedule=1f1b", "--layers=14", "--hidden=64"},
      {"--workers=4", "--schedule=interleaved"},
      {"--workers=4", "--schedule=gpipe", "--width=2", "--recompute"},
      {"--workers=6", "--model=bert-tiny", "--layers=6", "--synchronous", "--precision=bf16", "--minibatch=2"},
      {"--workers=4", "--schedule=amdp", "--stash", "--reproducible", "--memory-gib=0.3"},
  };
  for (const std::vector<std::string>& args : wishes) {
    std::vector<std::string> words = args;
    words.insert(words.begin(), "plan");
    words.emplace_back("--json");
    const CommandRun told = run_command(words);
    ASSERT_EQ(told.exit_code, 0) << told.log;
    const auto json = storage::parse_json(told.out);
    ASSERT_TRUE(json.ok()) << json.error();
    std::vector<std::string> train = args;
    train.emplace_back("--data=corpus.txt");
    const auto made = make_train_plan(train_request(train, host_memory_bytes()));
    ASSERT_TRUE(made.ok()) << made.error();
    const scheduler::Plan& plan = made->plan;
    storage::Json cuts = storage::Json::array();
    for (const int cut : plan.cuts) cuts.append(cut);
    const storage::Json& shape = *json->find("plan");
    EXPECT_EQ(*json->find("cuts"), cuts) << testing::PrintToString(args);
    EXPECT_EQ(*shape.find("kind"), storage::Json(to_string(plan.kind))) << testing::PrintToString(args);
    EXPECT_EQ(*shape.find("depth"), storage::Json(plan.depth));
    EXPECT_EQ(*shape.find("width"), storage::Json(plan.width));
    EXPECT_EQ(*shape.find("peak_bytes"), storage::Json(made->predicted_bytes));
    EXPECT_EQ(*json->find("window"), storage::Json(plan.window));
    EXPECT_EQ(*json->find("reason"), storage::Json(made->reason));
  }
}

// What both have is one option: the same name, default, meaning and help.
TEST_F(PlanCommand, HasTheOptionsOfTrain) {
  const std::vector<OptionSpec> train = train_options();
  std::size_t shared = 0;
  for (const OptionSpec& option : plan_command().spec.options) {
    const auto same = std::ranges::find(train, option.name, &OptionSpec::name);
    // A plan is for a kind of device, training for those of this host.
    const bool differs = option.name == "workers" || option.name == "json" || option.name == "device";
    if (same == train.end() || differs) continue;
    EXPECT_EQ(option, *same);
    ++shared;
  }
  EXPECT_EQ(shared, model_options().size() + wish_options().size() + emulation_options().size());
}

TEST(ProfileFile, ReadsBlocksAndRepeatsThem) {
  const auto profile = parse_profile(kProfile);
  ASSERT_TRUE(profile.ok()) << profile.error();
  EXPECT_EQ(profile->name, "mine");
  ASSERT_EQ(profile->blocks.size(), 8U);
  EXPECT_EQ(profile->blocks[3].name, "block 2");
  EXPECT_EQ(profile->blocks[3].backward, 2'500'000);
  EXPECT_EQ(profile->blocks[3].activation_bytes, 300);
  EXPECT_EQ(profile->blocks[3].working_bytes, 50);
  EXPECT_EQ(profile->optimizer_bytes, 8);
}

TEST(ProfileFile, TakesHalfOfABackwardForTheWeightsUnlessToldOtherwise) {
  EXPECT_EQ(parse_profile(kProfile)->blocks[3].weights, 1'250'000);
  const auto block = [](const std::string& weights) {
    return parse_profile(R"({"name": "x", "blocks": [{"name": "b", "forward_ms": 1, "backward_ms": 2, "weights_ms": )" +
                         weights + "}]}");
  };
  EXPECT_EQ(block("0.5")->blocks[0].weights, 500'000);
  EXPECT_EQ(block("0")->blocks[0].weights, 0);
  EXPECT_THAT(block("3").error().message, HasSubstr("time for weights"));
}

TEST(ProfileFile, NamesWhatIsWrongAndWhere) {
  const auto message = [](const char* text) { return parse_profile(text).error().message; };
  EXPECT_THAT(message("{"), HasSubstr("line 1"));
  EXPECT_THAT(message(R"({"name": "x", "block": []})"), HasSubstr("block"));
  EXPECT_THAT(message(R"({"name": "x", "blocks": []})"), HasSubstr("number of blocks"));
  EXPECT_THAT(message(R"({"name": "x", "blocks": [{"name": "b", "forward_ms": 1}]})"), HasSubstr("blocks[0]"));
  EXPECT_THAT(message(R"({"name": "x", "blocks": [{"name": "b", "forward_ms": "1", "backward_ms": 1}]})"),
              HasSubstr("blocks[0].forward_ms: expected a number"));
  EXPECT_THAT(message(R"({"name": "x", "blocks": [{"name": "b", "repeat": 1e9, "forward_ms": 1, "backward_ms": 1}]})"),
              HasSubstr("blocks[0].repeat"));
}

}  // namespace
}  // namespace everstep::launcher
