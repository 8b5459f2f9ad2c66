// A worker's device, by the name that --device gives it, on the fake accelerator.
#include "launcher/worker/worker_device.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <thread>

#include <gmock/gmock.h>

#include "launcher/worker/compute_watch.h"
#include "tests/accelerator/fake_device.h"
#include "trainer/model/wrapped_stage.h"
#include "trainer/threads/thread_transport.h"
#include "trainer/torch/devices.h"
#include "trainer/torch/torch_stage.h"

namespace everstep::launcher {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Pair;

constexpr int kDepth = 2;

class AnyTokens final : public trainer::DataSource {
 public:
  explicit AnyTokens(const trainer::ModelConfig& model) : model_(model) {}

  Result<trainer::Minibatch> training(Position position) const override {
    trainer::Minibatch minibatch{model_.minibatch, model_.shape.sequence, {}, {}, {}, {}, {}};
    for (std::int64_t i = 0; i < model_.tokens_per_minibatch(); ++i) {
      minibatch.tokens.push_back((position.value * 31 + i * 7) % model_.shape.vocabulary);
      minibatch.labels.push_back((position.value * 31 + (i + 1) * 7) % model_.shape.vocabulary);
    }
    return minibatch;
  }
  Result<trainer::Minibatch> validation(std::int64_t index) const override { return training(Position{index}); }
  std::int64_t validation_minibatches() const override { return 1; }

 private:
  trainer::ModelConfig model_;
};

class DeviceOfAWorker : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    trainer::prepare_torch(1);
    accelerator::Options options;
    options.on_mistake = accelerator::OnMistake::kRecord;
    options.jitter = std::chrono::microseconds(100);
    accelerator::register_fake_accelerator(options);
    trainer::DeviceKind kind;
    kind.name = "fake";
    kind.list = [] { return Result(std::vector<trainer::DeviceFacts>(2, {"fake accelerator", 1})); };
    kind.torch_name = [](int /*number*/) { return accelerator::fake_device().str(); };
    trainer::add_device_kind(std::move(kind));
  }

  static trainer::TrainOptions options() {
    trainer::TrainOptions options;
    options.model.shape = {"tiny", scheduler::ModelFamily::kGpt, 2, 32, 2, 16, 256};
    options.model.minibatch = 2;
    options.accumulation = trainer::Accumulation::kFixedPoint;
    options.schedule.kind = scheduler::ScheduleKind::kOneFOneB;
    options.schedule.depth = kDepth;
    options.schedule.window = 4;
    options.cuts = {0, 2, 4};
    options.learning_rate.total_samples = 100;
    options.steps = 3;
    return options;
  }

  using ChangeStages = std::function<void(int worker, trainer::TrainHooks&)>;

  // The bytes of all weights at the end, by worker. `work` knows what the device of the first one has to do.
  static std::vector<std::string> trained_on(const DeviceName& name, const ChangeStages& change = {},
                                             DeviceWork* work = nullptr) {
    const trainer::TrainOptions options = DeviceOfAWorker::options();
    const AnyTokens data(options.model);
    auto transports = trainer::make_thread_transports(kDepth);
    std::vector<std::string> weights(kDepth);
    std::vector<std::thread> workers;
    for (int worker = 0; worker < kDepth; ++worker) {
      workers.emplace_back([&, worker] {
        std::string& mine = weights[static_cast<std::size_t>(worker)];
        trainer::Transport& transport = *transports[static_cast<std::size_t>(worker)];
        const auto device = WorkerDevice::open(name);
        ASSERT_TRUE(device) << device.error();
        trainer::TrainHooks own_hooks = hooks(options, mine);
        if (change) change(worker, own_hooks);
        const auto result = device->train(options, data, transport, nullptr, own_hooks, worker == 0 ? work : nullptr);
        ASSERT_TRUE(result) << result.error();
        EXPECT_TRUE(transport.close(std::chrono::seconds(20)));
      });
    }
    for (std::thread& worker : workers) worker.join();
    return weights;
  }

 private:
  static trainer::TrainHooks hooks(const trainer::TrainOptions& options, std::string& weights) {
    trainer::TrainHooks hooks;
    hooks.now = [] { return Tick{std::chrono::steady_clock::now().time_since_epoch().count()}; };
    hooks.make_stage = trainer::make_torch_stage;
    hooks.initialise_weights = [&options](const trainer::StageLayout& layout, const trainer::Buffer& buffer) {
      trainer::initialise_weights(options.model, layout, buffer);
    };
    hooks.initialise_master = [&options](const trainer::StageLayout& layout, const trainer::Buffer& buffer) {
      trainer::initialise_master(options.model, layout, buffer);
    };
    hooks.on_end = [&weights](int /*stage*/, const trainer::StageLayout&, const trainer::Buffer& buffer) {
      weights.append(reinterpret_cast<const char*>(buffer.data), buffer.size);
    };
    return hooks;
  }
};

TEST_F(DeviceOfAWorker, TrainsToTheBitsOfTheHost) {
  const std::vector<std::string> expected = trained_on({kHostDevice});
  EXPECT_FALSE(expected.front().empty());
  EXPECT_EQ(trained_on({"fake", 1}) == expected, true);
  EXPECT_EQ(accelerator::race_report(), "");
}

// A kernel does not end: nobody waits for it but the watch, which sees that nothing passes any more.
TEST_F(DeviceOfAWorker, IsFoundToHangWhenAKernelDoesNotEnd) {
  constexpr Tick kHour = 3600 * kTicksPerSecond;
  std::atomic<Tick> now = 1;
  ComputeWatch watch([&now] { return now.load(); }, 30 * kTicksPerSecond);
  std::promise<void> has_begun;
  std::promise<void> was_given;
  std::promise<void> may_end;
  // After the last op of the second window: then no other op is computed before it ends.
  const auto after_last_op = [](const std::function<void()>& then) -> trainer::AroundOp {
    return [then](trainer::StageOp op, Position position, const std::function<void()>& run) {
      run();
      if (op == trainer::StageOp::kBackwardInput && position.value == 7) then();
    };
  };
  const trainer::AroundOp stick = after_last_op([&] {
    accelerator::fake_accelerator().launch(accelerator::current_stream(), "a kernel that sticks", {}, [&] {
      has_begun.set_value();
      may_end.get_future().wait();
    });
  });
  const trainer::AroundOp tell = after_last_op([&] { was_given.set_value(); });
  const auto change = [&](int worker, trainer::TrainHooks& hooks) {
    if (worker != 0) return;
    hooks.make_stage = [&, make = hooks.make_stage](const trainer::StageRequest& request) {
      return wrap_ops(watch.watch(wrap_ops(make(request), stick), request.device), tell);
    };
  };
  const std::vector<std::string> expected = trained_on({kHostDevice});
  std::vector<std::string> found;
  std::thread training([&] { found = trained_on({"fake", 0}, change, &watch.device()); });
  has_begun.get_future().wait();
  was_given.get_future().wait();
  EXPECT_TRUE(watch.makes_progress());
  now += kHour;
  EXPECT_FALSE(watch.makes_progress());
  may_end.set_value();
  training.join();
  now += kHour;
  EXPECT_TRUE(watch.makes_progress());
  EXPECT_EQ(found == expected, true);
  EXPECT_EQ(accelerator::race_report(), "");
}

TEST_F(DeviceOfAWorker, IsTheFirstOfItsKindUnlessItHasANumber) {
  EXPECT_EQ(WorkerDevice::open({"fake"})->text(), "fake:0");
  EXPECT_EQ(WorkerDevice::open({"fake", 1})->text(), "fake:1");
  EXPECT_EQ(WorkerDevice::open({kHostDevice})->text(), "cpu");
}

TEST_F(DeviceOfAWorker, IsRefusedIfItIsNotThere) {
  EXPECT_THAT(WorkerDevice::open({"fake", 2}).error().message, HasSubstr("this host has 2 of them"));
  EXPECT_THAT(WorkerDevice::open({"gpu"}).error().message, HasSubstr("no kind of device 'gpu'"));
  EXPECT_THAT(WorkerDevice::open({"meta"}).error().message, HasSubstr("no kind of device 'meta'"));
  EXPECT_EQ(WorkerDevice::open({"xpu"}).error().message, "this build has no XPU");
  EXPECT_EQ(WorkerDevice::open({"cuda"}).error().message, "this build has no CUDA");
}

TEST_F(DeviceOfAWorker, IsToldToCheckpoints) {
  const storage::Settings facts = WorkerDevice::open({"fake", 1})->provenance();
  EXPECT_THAT(facts, Contains(Pair("device", "fake")));
  EXPECT_THAT(facts, Contains(Pair("device-name", "fake accelerator")));
  EXPECT_TRUE(std::is_sorted(facts.begin(), facts.end()));
}

}  // namespace
}  // namespace everstep::launcher
