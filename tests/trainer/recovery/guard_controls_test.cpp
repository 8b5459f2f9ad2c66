#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/recovery/guarded_chain.h"
#include "tests/trainer/recovery/handover_chain.h"
#include "trainer/loop/worker.h"

// Workers that keep copies wrongly. The checks that the right ones pass must fail for them, or they prove nothing.
namespace everstep::trainer {
namespace {

using scheduler::ScheduleKind;
using ::testing::HasSubstr;

// train() with another kind of worker.
template <typename WrongWorker>
class Careless : public Worker {
 public:
  Careless(const TrainOptions& options, Transport& transport, const TrainHooks& hooks, scheduler::Schedule shape)
      : Worker(options, transport, hooks, std::move(shape)), state_copies_(*hooks.copies) {}

  static Result<TrainResult> train(const TrainOptions& options, const DataSource& data, Transport& transport,
                                   const TrainHooks& hooks) {
    auto shape = shape_of(options, transport);
    if (!shape) return shape.error();
    WrongWorker worker(options, transport, hooks, *std::move(shape));
    EVERSTEP_TRY(worker.prepare(data));
    EVERSTEP_TRY(worker.run(options.steps));
    EVERSTEP_TRY(worker.end_copies());
    return worker.result();
  }

 protected:
  StateCopies& state_copies() const { return state_copies_; }

 private:
  StateCopies& state_copies_;
};

class Careful final : public Careless<Careful> {
 public:
  using Careless::Careless;
};

// Says that its copies came, and joins the exchange without them.
class JoinsTheExchangeEarly final : public Careless<JoinsTheExchangeEarly> {
 public:
  using Careless::Careless;

 private:
  Status finish_copies() override {
    state_copies().guarded_came();
    return {};
  }
};

// Keeps the newest version when the step has already changed it.
class KeepsAfterTheStep final : public Careless<KeepsAfterTheStep> {
 public:
  using Careless::Careless;

  static Result<TrainResult> train(const TrainOptions& options, const DataSource& data, Transport& transport,
                                   const TrainHooks& hooks) {
    TrainHooks late = hooks;
    late.on_step = [&](const StepReport& report) {
      hooks.copies->keep_newest();
      hooks.on_step(report);
    };
    return Careless::train(options, data, transport, late);
  }

 private:
  void keep_newest_copy() override {}
};

// Lets the newest version take the place of the one before as soon as it has it, whether others have it or not.
class KeepsBeforeTheExchange final : public Careless<KeepsBeforeTheExchange> {
 public:
  using Careless::Careless;

 private:
  Status finish_copies() override {
    EVERSTEP_TRY(Worker::finish_copies());
    state_copies().keep_newest();
    return {};
  }
  void keep_newest_copy() override {}
};

GuardedGeneration amdp4(CallTest dies) {
  return {ScheduleKind::kAmdp, 4, 1, {0, 1, 2, 3}, 1, {}, {{1, std::move(dies)}}};
}

std::string difference_after(GuardedChain& chain, const GuardedGeneration& next) {
  const Status ran = chain.run(next);
  return ran ? chain.difference_from_reference() : ran.error().message;
}

// Worker 1 dies.
template <typename WorkerKind>
std::string difference_after_a_death(const CallTest& dies) {
  GuardedChain chain(chain_options(14, 6));
  chain.train_with = WorkerKind::train;
  return difference_after(chain, amdp4(dies));
}

void lose_copies_of_worker_1(int name, MortalTransport& transport) {
  if (name != 1) return;
  transport.loses = [](const TransportCall& call) {
    return call.header.kind == FrameKind::kCopy && call.header.window >= 3;
  };
}

// Worker 1's copies of version 3 and later are lost on the way. It dies later on, when those who have theirs have come
// to that exchange: worker 2, its guard, should be missing there.
template <typename WorkerKind>
std::string difference_after_late_copies(std::int64_t exchange) {
  GuardedChain chain(chain_options(14, 6));
  chain.train_with = WorkerKind::train;
  std::atomic<int> came = 0;
  chain.change_transport = [&](int name, MortalTransport& transport) {
    lose_copies_of_worker_1(name, transport);
    if (name != 0 && name != 3) return;
    transport.observe = [&came, exchange, is_seen = false](const TransportCall& call) mutable {
      const bool joins = call.header.kind == FrameKind::kRecord && call.header.window == exchange;
      if (joins && !std::exchange(is_seen, true)) came.fetch_add(1);
    };
  };
  const auto dies = [&](const TransportCall& call) {
    if (call.header.kind != FrameKind::kRecord || call.header.window < exchange) return false;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (came < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    return true;
  };
  return difference_after(chain, amdp4(dies));
}

TEST(GuardControls, NoMistakeIsNoDifference) {
  EXPECT_EQ(difference_after_a_death<Careful>(at_send(FrameKind::kRecord, 4)), "");
  EXPECT_EQ(difference_after_a_death<Careful>(at_send(FrameKind::kWeights, 3)), "");
  EXPECT_EQ(difference_after_late_copies<Careful>(3), "");
}

TEST(GuardControls, AGuardThatJoinsTheExchangeEarlyIsNoticed) {
  EXPECT_THAT(difference_after_late_copies<JoinsTheExchangeEarly>(5), HasSubstr("weights of block"));
}

TEST(GuardControls, AWorkerThatForgetsTheVersionBeforeTheExchangeIsNoticed) {
  EXPECT_THAT(difference_after_late_copies<KeepsBeforeTheExchange>(3), HasSubstr("no version in common"));
}

TEST(GuardControls, AnOwnerThatKeepsAVersionAfterTheStepIsNoticed) {
  EXPECT_THAT(difference_after_a_death<KeepsAfterTheStep>(at_send(FrameKind::kCopy, 4)), HasSubstr("weights of block"));
}

}  // namespace
}  // namespace everstep::trainer
