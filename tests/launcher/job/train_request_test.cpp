#include "launcher/job/train_request.h"

#include <gmock/gmock.h>

#include "tests/launcher/job/train_config.h"

namespace everstep::launcher {
namespace {

using testing::HasSubstr;

Failure refusal(std::vector<std::string> args) {
  args.emplace_back("--workers=4");
  args.emplace_back("--data=corpus.txt");
  Outcome failure;
  read_train_request(train_config(args), kHostMemory, failure);
  return failure.value_or(Failure(Error{ErrorCode::kInternal, "nothing was refused", ""}));
}

TEST(TrainRequest, NeedsWorkersAndDataAlone) {
  const TrainRequest request = train_request({"--workers=4", "--data=corpus.txt"});
  EXPECT_EQ(request.workers, 4);
  EXPECT_EQ(request.data->path, "corpus.txt");
  EXPECT_EQ(request.options.model.shape.name, "gpt2-tiny");
  EXPECT_EQ(request.plan.window, 16);
  EXPECT_EQ(request.plan.hardware.memory_bytes, kHostMemory / 4);
  EXPECT_FALSE(request.emulation);
  EXPECT_EQ(request.options.accumulation, trainer::Accumulation::kFloat);
}

TEST(TrainRequest, ReplacesSizesOfTheModel) {
  const auto& shape = train_request({"--workers=1", "--data=x", "--model=bert-tiny", "--layers=3", "--hidden=32",
                                     "--heads=4", "--sequence=24", "--vocabulary=260"})
                          .options.model.shape;
  EXPECT_EQ(shape, (scheduler::ModelShape{"bert-tiny", scheduler::ModelFamily::kBert, 3, 32, 4, 24, 260}));
}

TEST(TrainRequest, SchedulesTheLearningRateBySamples) {
  const auto rate = train_request({"--workers=1", "--data=x", "--steps=50", "--window=10", "--minibatch=4", "--lr=0.01",
                                   "--warmup=0.1", "--lr-decay=linear"})
                        .options.learning_rate;
  EXPECT_EQ(rate.total_samples, 2000);
  EXPECT_EQ(rate.warmup_samples, 200);
  EXPECT_DOUBLE_EQ(rate.floor, 0.001);
  EXPECT_EQ(rate.decay, trainer::Decay::kLinear);
}

TEST(TrainRequest, TakesWishesForThePlan) {
  const TrainRequest request = train_request({"--workers=8", "--emulate=10:20.5", "--schedule=1f1b", "--depth=4",
                                              "--width=2", "--pipelines=1", "--memory-gib=1.5", "--synchronous"});
  EXPECT_EQ(request.plan.kind, scheduler::ScheduleKind::kOneFOneB);
  EXPECT_EQ(request.plan.depth, 4);
  EXPECT_EQ(request.plan.width, 2);
  EXPECT_EQ(request.plan.pipelines, 1);
  EXPECT_TRUE(request.plan.synchronous);
  EXPECT_EQ(request.plan.hardware.memory_bytes, std::int64_t{3} << 29);
  EXPECT_EQ(request.emulation, (Emulation{10, 20.5}));
  EXPECT_FALSE(request.data);
}

TEST(TrainRequest, TakesTimesOfAnEmulatedDevice) {
  const auto times = [](const std::string& text) {
    return *train_request({"--workers=2", "--emulate=" + text}).emulation;
  };
  EXPECT_EQ(times("10:20.5"), (Emulation{10, 20.5, 0, false}));
  EXPECT_EQ(times("10:8:7.5"), (Emulation{10, 8, 7.5, false}));
  EXPECT_EQ(times("model:1:2"), (Emulation{1, 2, 0, true}));
  EXPECT_EQ(times("model:1:2:3"), (Emulation{1, 2, 3, true}));
  for (const char* wrong : {"10", "10:", ":10", "10:-1", "10:1e7", "1:2:", "1:2:3:4", "1:2:x", "model:1", "1::2"}) {
    const std::string option = std::string("--emulate=") + wrong;
    EXPECT_THAT(refusal({option}).error.line(), HasSubstr(option + ": expected two or three times in ms"));
  }
}

TEST(TrainRequest, RefusesSchedulesThatWorkersCannotRun) {
  for (const scheduler::ScheduleKind kind : scheduler::all_schedule_kinds()) {
    if (is_trainable(kind)) continue;
    const std::string option = "--schedule=" + std::string(to_string(kind));
    EXPECT_THAT(refusal({option}).error.message, HasSubstr(option)) << option;
  }
}

TEST(TrainRequest, NamesTheOptionThatDoesNotFit) {
  EXPECT_THAT(refusal({"--window=0"}).error.message, HasSubstr("--window=0: expected an integer from 1"));
  EXPECT_THAT(refusal({"--minibatch=0"}).error.message, HasSubstr("--minibatch=0"));
  EXPECT_THAT(refusal({"--steps=0"}).error.message, HasSubstr("--steps=0"));
  EXPECT_THAT(refusal({"--model=gpt5"}).error.line(), HasSubstr("--model=gpt5: unknown model (hint: one of gpt2-tiny"));
  EXPECT_THAT(refusal({"--schedule=amdp", "--shapes=4=4x1,6=6x1"}).error.line(), HasSubstr("a multiple of 4"));
  EXPECT_THAT(refusal({"--pipelines=2", "--shapes=4=4x1,3=3x1"}).error.line(),
              HasSubstr("depth 3 cannot have --pipelines=2 (hint: at depth 3 there can be 1)"));
  EXPECT_THAT(refusal({"--lr=0.1", "--min-lr=1"}).error.message, HasSubstr("--min-lr=1: is above --lr"));
  EXPECT_THAT(refusal({"--next-sentence"}).error.message, HasSubstr("only BERT has this head"));
  EXPECT_THAT(refusal({"--schedule=pipedream-2bw"}).error.message, HasSubstr("cannot be trained"));
  EXPECT_THAT(refusal({"--schedule=zbv"}).error.message, HasSubstr("--schedule=zbv"));
  EXPECT_THAT(refusal({"--data-format=csv"}).error.message, HasSubstr("--data-format=csv"));
  EXPECT_THAT(refusal({"--timeout=0"}).error.message, HasSubstr("--timeout=0"));
  EXPECT_EQ(refusal({"--window=0"}).exit_code, ExitCode::kUsage);
}

TEST(TrainRequest, EmulatesLinksOfEmulatedDevicesOnly) {
  EXPECT_FALSE(train_request({"--workers=2", "--emulate=1:2"}).emulated_link);
  EXPECT_EQ(train_request({"--workers=2", "--emulate=1:2", "--emulate-link=0.8"}).emulated_link, 100'000'000);
  EXPECT_THAT(refusal({"--emulate-link=1"}).error.message, HasSubstr("--emulate-link=1: emulates the links"));
  for (const char* wrong : {"0", "-1", "fast", "1e9"}) {
    const std::string option = std::string("--emulate-link=") + wrong;
    EXPECT_THAT(refusal({"--emulate=1:2", option}).error.message, HasSubstr(option));
  }
}

TEST(TrainRequest, PutsOnlyTheUpdatesOfClockworkOff) {
  EXPECT_EQ(train_request({"--workers=2", "--data=x", "--schedule=clockwork", "--lag=3"}).plan.lag, 3);
  EXPECT_FALSE(train_request({"--workers=2", "--data=x"}).plan.lag);
  EXPECT_THAT(refusal({"--lag=1"}).error.message, HasSubstr("--lag=1: only --schedule=clockwork"));
  EXPECT_THAT(refusal({"--lag=1", "--schedule=amdp"}).error.message, HasSubstr("only --schedule=clockwork"));
  EXPECT_THAT(refusal({"--lag=-1", "--schedule=clockwork"}).error.message, HasSubstr("--lag=-1: expected"));
}

TEST(TrainRequest, RefusesSizesThatDoNotGoTogether) {
  const Failure failure = refusal({"--hidden=30", "--heads=4"});
  EXPECT_EQ(failure.exit_code, ExitCode::kConfiguration);
  EXPECT_THAT(failure.error.message, HasSubstr("30"));
}

TEST(TrainRequest, NeedsDataUnlessEmulated) {
  Outcome failure;
  read_train_request(train_config({"--workers=2"}), kHostMemory, failure);
  ASSERT_TRUE(failure);
  EXPECT_THAT(failure->error.message, HasSubstr("--data is missing"));
}

}  // namespace
}  // namespace everstep::launcher
