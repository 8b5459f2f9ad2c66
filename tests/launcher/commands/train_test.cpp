#include <filesystem>

#include <gmock/gmock.h>

#include "tests/launcher/commands/command_run.h"

namespace everstep::launcher {
namespace {

using testing::HasSubstr;

// What is refused before any process starts.
class TrainCommand : public CommandFiles {
 protected:
  std::string refusal(std::vector<std::string> args, int exit_code, const Environment& environment = {}) {
    args.insert(args.begin(), {"train", "--output=" + path("run")});
    const std::string line = failure_of(args, exit_code, environment);
    EXPECT_FALSE(std::filesystem::exists(path("run"))) << "something was left behind";
    return line;
  }

  std::string corpus() const { return "--data=" + file("corpus.txt", std::string(4000, 'x')); }
};

TEST_F(TrainCommand, SaysWhatIsWrongWithTheData) {
  EXPECT_THAT(refusal({"--workers=2"}, 64), HasSubstr("--data is missing"));
  EXPECT_THAT(refusal({"--workers=2", "--data=" + path("none.txt")}, 64), HasSubstr("none.txt"));
  EXPECT_THAT(refusal({"--workers=2"}, 78, {{"EVERSTEP_DATA", path("none.txt")}}), HasSubstr("none.txt"));
  EXPECT_THAT(refusal({"--workers=2", "--data=" + file("empty.txt", "")}, 64), HasSubstr("empty.txt"));
  EXPECT_THAT(refusal({"--workers=2", "--data=" + file("odd.bin", "abc")}, 64), HasSubstr("odd.bin"));
  EXPECT_THAT(refusal({"--workers=2", "--data=" + file("lonely.idx", "MMIDIDX")}, 64), HasSubstr("lonely"));
  EXPECT_THAT(refusal({"--workers=2", corpus(), "--sequence=5000"}, 64), HasSubstr("smaller --sequence"));
  EXPECT_THAT(refusal({"--workers=2", corpus(), "--vocabulary=100"}, 64), HasSubstr("vocabulary of 256"));
}

TEST_F(TrainCommand, SaysWhyThereIsNoPlan) {
  EXPECT_THAT(refusal({"--workers=4", corpus(), "--depth=4", "--window=3"}, 78),
              HasSubstr("depth * width = 4 needs a window of at least as many minibatches, got 3"));
  EXPECT_THAT(refusal({"--workers=4", corpus(), "--depth=8"}, 78), HasSubstr("more than the 4 workers"));
  EXPECT_THAT(refusal({"--workers=4", corpus(), "--depth=4", "--pipelines=3"}, 78),
              HasSubstr("no plan has a schedule with 3 pipelines for depth 4 (hint: at depth 4 there can be 1 or 2)"));
  EXPECT_THAT(refusal({"--workers=4", corpus(), "--schedule=amdp", "--depth=3"}, 78), HasSubstr("3"));
  EXPECT_THAT(refusal({"--workers=4", corpus(), "--schedule=pipedream-2bw"}, 64), HasSubstr("cannot be trained"));
  EXPECT_THAT(refusal({"--workers=4", corpus(), "--schedule=amdp", "--synchronous"}, 78), HasSubstr("amdp-sync"));
  EXPECT_THAT(refusal({"--workers=4", corpus(), "--memory-gib=0.001"}, 78), HasSubstr("GiB"));
}

TEST_F(TrainCommand, SuggestsWhatWasMeant) {
  EXPECT_THAT(refusal({"--workers=2", corpus(), "--model=gpt2"}, 64), HasSubstr("did you mean gpt2-small?"));
  EXPECT_THAT(
      refusal({"--workers=2", corpus(), "--batch-size=8"}, 64),
      HasSubstr("did you mean --window (Minibatches per update, over all workers) or --minibatch (Sequences per "
                "minibatch)?"));
  EXPECT_THAT(refusal({"--workers=2", corpus(), "--kind=amdp"}, 64), HasSubstr("did you mean --schedule?"));
  EXPECT_THAT(refusal({"--workers=2", corpus(), "--learning-rate=1"}, 64), HasSubstr("did you mean --lr?"));
}

TEST_F(TrainCommand, PrintsNoConfigurationThatItWouldRefuseWithoutSayingSo) {
  const auto answer = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"train", "--print-config"});
    const CommandRun run = run_command(args);
    EXPECT_THAT(run.out, HasSubstr("# --workers\n"));
    return std::to_string(run.exit_code) + " " + run.log;
  };
  EXPECT_EQ(answer({"--workers=2", corpus()}), "0 ");
  EXPECT_EQ(answer({"--workers=2", corpus(), "--etcd=none"}), "0 ");
  for (const std::string etcd : {"--etcd=own", "--etcd=none"}) {
    EXPECT_THAT(answer({"--workers=0", corpus(), etcd}), HasSubstr("64 everstep: --workers=0"));
    EXPECT_THAT(answer({"--workers=2", etcd}), HasSubstr("64 everstep: --data is missing"));
    EXPECT_THAT(answer({"--workers=2", corpus(), "--steps=many", etcd}), HasSubstr("64 everstep: --steps=many"));
    EXPECT_THAT(answer({"--workers=2", corpus(), "--hidden=30", etcd}), HasSubstr("78 everstep: "));
    EXPECT_THAT(answer({"--workers=4", corpus(), "--depth=8", etcd}), HasSubstr("more than the 4 workers"));
    EXPECT_THAT(answer({"--workers=2", "--data=" + path("none.txt"), etcd}), HasSubstr("none.txt"));
  }
  EXPECT_THAT(answer({"--workers=2", corpus(), "--restart=maybe"}), HasSubstr("64 everstep: --restart=maybe"));
  EXPECT_THAT(answer({"--workers=2", corpus(), "--etcd=none", "--restart=never"}), HasSubstr("has no meaning with"));
}

TEST_F(TrainCommand, SaysHowToMakeTheSecretThatOtherHostsNeed) {
  for (const char* option : {"--bind=10.0.0.7", "--port-range=4700-4799", "--wire=tcp"}) {
    EXPECT_THAT(refusal({"--workers=2", corpus(), option}, 64),
                testing::AllOf(HasSubstr(std::string(option) + ": needs a secret"), HasSubstr("openssl rand -hex 32")));
    EXPECT_THAT(refusal({"--workers=2", corpus(), "--etcd=none", option}, 64), HasSubstr("has no meaning with"));
  }
}

TEST_F(TrainCommand, RefusesADirectoryThatHoldsARun) {
  std::filesystem::create_directory(path("old"));
  file("old/metrics.jsonl", "precious");
  EXPECT_THAT(failure_of({"train", "--workers=1", corpus(), "--output=" + path("old")}, 64),
              HasSubstr("already holds a run"));
  EXPECT_EQ(text_of("old/metrics.jsonl"), "precious");
}

TEST_F(TrainCommand, HasHelpWithAnExample) {
  const CommandRun run = run_command({"train", "--help"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, HasSubstr("everstep train --workers=4 --data=examples/corpus.txt"));
  EXPECT_THAT(run.out, HasSubstr("--emulate=F:B"));
  EXPECT_THAT(run.out, HasSubstr("copies that they have in memory"));
}

}  // namespace
}  // namespace everstep::launcher
