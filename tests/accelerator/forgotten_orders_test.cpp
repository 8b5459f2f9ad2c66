// Negative controls: one order between streams, or between the device and the host, is forgotten in a run that is right
// otherwise. The checker notices, whatever the timing.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include "tests/accelerator/device_runs.h"
#include "tests/accelerator/prepared_device.h"
#include "tests/trainer/loop/training_support.h"

namespace everstep::accelerator {
namespace {

using namespace everstep::trainer;
using scheduler::ModelFamily;
using scheduler::ScheduleKind;

// The real memory, whose every step a test may take wrongly.
class Forgetful : public TorchDeviceMemory {
 public:
  Forgetful() : TorchDeviceMemory(prepared_device()), side_(prepared_device_stream()) {}

 protected:
  // Runs on a stream that nothing orders.
  template <typename Function>
  void aside(Function function) {
    const c10::StreamGuard guard(side_);
    function();
  }

 private:
  static c10::Stream prepared_device_stream() {
    return c10::impl::VirtualGuardImpl(prepared_device().type()).getStreamFromGlobalPool(prepared_device());
  }

  c10::Stream side_;
};

class CopiesBeforeItIsComputed final : public Forgetful {
  void begin_after_compute(const c10::Stream&) override {}
};

class ReleasesWhatIsBeingCopied final : public Forgetful {
  void keep_for(const Buffer&, const c10::Stream&) override {}
};

class OverwritesWhatIsBeingCopied final : public Forgetful {
  void compute_after_copies_of(const Buffer&) override {}
};

// The host believes that a copy of that many bytes has come.
template <DeviceMemory::Lane kLane>
class ReadsTooEarly final : public Forgetful {
  Mark copy_out(const Buffer& to, const Buffer& from, Lane lane) override {
    Mark mark = Forgetful::copy_out(to, from, lane);
    const bool is_of_the_record = from.size < kSmallestTensor;
    return lane == kLane && !is_of_the_record ? nullptr : mark;
  }

 public:
  static constexpr std::size_t kSmallestTensor = 4096;  // what travels between two stages of the tiny model
};

class ReadsTheRecordTooEarly final : public Forgetful {
  Mark copy_out(const Buffer& to, const Buffer& from, Lane lane) override {
    Mark mark = Forgetful::copy_out(to, from, lane);
    return from.size < ReadsTooEarly<Lane::kWire>::kSmallestTensor ? nullptr : mark;
  }
};

// One buffer for all receives and sends of a size, which the device may not have read yet.
class UsesStagingAgain final : public Forgetful {
  Buffer allocate_pinned(std::size_t bytes) override {
    std::vector<Buffer>& known = known_[bytes];
    if (known.size() < 2) known.push_back(Forgetful::allocate_pinned(bytes));
    return known[next_++ % known.size()];
  }

  std::map<std::size_t, std::vector<Buffer>> known_;
  std::size_t next_ = 0;
};

class ZeroesTooEarly final : public Forgetful {
  void zero(const Buffer& buffer) override {
    aside([&] { Forgetful::zero(buffer); });
  }
};

class SwapsTooEarly final : public Forgetful {
  void swap(const Buffer& a, const Buffer& b) override {
    aside([&] { Forgetful::swap(a, b); });
  }
};

class CopiesInTooEarly final : public Forgetful {
  void copy(const Buffer& to, const Buffer& from) override {
    aside([&] { Forgetful::copy(to, from); });
  }
};

class AddsTooEarly final : public Forgetful {
  void add_sums(Accumulation accumulation, const Buffer& target, const Buffer& addend) override {
    aside([&] { Forgetful::add_sums(accumulation, target, addend); });
  }
};

class StepsTooEarly final : public Forgetful {
  void adamw(Accumulation accumulation, const kernels::AdamWConstants& constants,
             const AdamWBuffers& buffers) override {
    aside([&] { Forgetful::adamw(accumulation, constants, buffers); });
  }
};

class NotesTooEarly final : public Forgetful {
  Noted<double> sum_of_squares(Accumulation accumulation, const Buffer& gradient) override {
    Noted<double> noted;
    aside([&] { noted = Forgetful::sum_of_squares(accumulation, gradient); });
    return noted;
  }
};

// A sink that is content with any bytes, as long as they have come.
class LooksAtBytes final : public CheckpointSink {
 public:
  bool idle() override { return true; }
  void save(StagedCut cut) override {
    wait_for(cut.is_here);
    for (const StagedStage& stage : cut.stages) sum_ += std::to_integer<int>(*stage.state.weights.data);
  }
  void skipped(Position) override {}
  Status finish() override { return {}; }

 private:
  int sum_ = 0;
};

// A run that has everything: frames, reduces, copies of guards, checkpoints, stashed weights.
std::string mistakes_of(const MakeMemory& make_memory) {
  const TestPlan plan{ScheduleKind::kAmdp, 4, 1, 8};
  TrainOptions options = under_plan(tiny_training(ModelFamily::kGpt, 3), plan);
  options.steps = 3;
  options.stash = true;
  options.checkpoints.every_updates = 1;
  const auto placement = scheduler::Placement::make(plan.kind, plan.depth).value();
  for (int stage = 0; stage < placement.stages(); ++stage) {
    options.guards.push_back({(placement.owner_of(stage) + 1) % plan.depth});
  }
  std::vector<StateCopies> copies(4);
  std::vector<LooksAtBytes> sinks(4);
  RunChanges changes;
  changes.change_hooks = [&](int worker, TrainHooks& hooks) {
    hooks.copies = &copies[static_cast<std::size_t>(worker)];
    hooks.checkpoints = &sinks[static_cast<std::size_t>(worker)];
  };
  const auto data = shipped_corpus(options.model);
  forget_mistakes();
  (void)run_in_threads(options, *data, on_device(changes, make_memory));
  return race_report();
}

template <typename Memory>
MakeMemory all_have() {
  return [](int) { return std::make_unique<Memory>(); };
}

TEST(ForgottenOrders, AreNoneInTheRealMemory) { EXPECT_EQ(mistakes_of(plain_memory), ""); }

struct Control {
  const char* name;
  MakeMemory memory;
};

class ForgottenOrder : public testing::TestWithParam<Control> {};

TEST_P(ForgottenOrder, IsNoticed) { EXPECT_NE(mistakes_of(GetParam().memory), ""); }

INSTANTIATE_TEST_SUITE_P(
    Device, ForgottenOrder,
    testing::Values(Control{"CopyOutAfterCompute", all_have<CopiesBeforeItIsComputed>()},
                    Control{"ReleaseAfterCopyOut", all_have<ReleasesWhatIsBeingCopied>()},
                    Control{"OverwriteAfterCopyOut", all_have<OverwritesWhatIsBeingCopied>()},
                    Control{"SendAfterCopyOut", all_have<ReadsTooEarly<DeviceMemory::Lane::kWire>>()},
                    Control{"SaveAfterCopyOut", all_have<ReadsTooEarly<DeviceMemory::Lane::kBulk>>()},
                    Control{"RecordAfterCopyOut", all_have<ReadsTheRecordTooEarly>()},
                    Control{"StagingAfterCopyIn", all_have<UsesStagingAgain>()},
                    Control{"Zero", all_have<ZeroesTooEarly>()}, Control{"Swap", all_have<SwapsTooEarly>()},
                    Control{"CopyIn", all_have<CopiesInTooEarly>()}, Control{"Add", all_have<AddsTooEarly>()},
                    Control{"Step", all_have<StepsTooEarly>()}, Control{"Note", all_have<NotesTooEarly>()}),
    [](const auto& test) { return test.param.name; });

// As a minibatch is uploaded.
TEST(ForgottenOrders, OfAnUploadAreNoticed) {
  forget_mistakes();
  const TorchDeviceMemory memory(prepared_device());
  const at::Tensor pinned = at::zeros({1024}, at::TensorOptions(at::kLong).pinned_memory(true));
  at::Tensor uploaded;
  for (int i = 0; i < 8; ++i) {
    uploaded = pinned.to(memory.device(), true);
    pinned.fill_(i);
  }
  EXPECT_NE(race_report(), "");
}

}  // namespace
}  // namespace everstep::accelerator
