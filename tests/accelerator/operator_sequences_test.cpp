// Random programs: the same bits as on the CPU, on one stream and on several that wait for each other; and mistakes are
// found when they do not wait.
#include <cstdint>
#include <map>
#include <vector>

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/accelerator/prepared_device.h"

namespace everstep::accelerator {
namespace {

constexpr std::int64_t kSide = 12;
constexpr std::size_t kTensors = 6;
constexpr int kSteps = 80;

// One operator of three matrices; it may change the first.
at::Tensor step(std::uint64_t operation, at::Tensor a, const at::Tensor& b, const at::Tensor& c) {
  switch (operation) {
    case 0:
      return a.mm(b.t());
    case 1:
      return at::addmm(c.select(0, 1), a, b);
    case 2:
      return at::gelu(b) + c;
    case 3:
      return at::_log_softmax(b, 1, false);
    case 4:
      return a.add_(b, 0.5);
    case 5:
      return at::cat({a.chunk(3, 1)[0], b.chunk(3, 1)[1], c.chunk(3, 1)[2]}, 1);
    case 6:
      return std::get<0>(at::native_layer_norm(b, {kSide}, c.select(0, 0), c.select(0, 1), 1e-5));
    case 7:
      return b.sum(0, true).expand({kSide, kSide}).contiguous();
    case 8:
      return b.index_select(0, at::arange(kSide - 1, -1, -1, a.options().dtype(at::kLong)));
    case 9:
      return b.to(at::kBFloat16).mm(c.to(at::kBFloat16)).to(at::kFloat);
    case 10:
      return a.narrow(1, 2, 3).mul_(0.25), a;
    case 11:
      return at::tanh(b).transpose(0, 1).contiguous();
    default:
      return b.clone();
  }
}

// Where the program runs, and how it keeps streams in order.
class Machine {
 public:
  Machine(c10::Device device, int streams, bool waits) : device_(device), waits_(waits) {
    if (device.type() == c10::kCPU) return;
    const c10::impl::VirtualGuardImpl guard{device.type()};
    for (int i = 0; i < streams; ++i) streams_.push_back(guard.getStreamFromGlobalPool(device));
  }

  std::vector<at::Tensor> run(std::uint64_t seed) {
    const RandomStream random{seed, 5};
    std::uint64_t draw = 0;
    std::vector<at::Tensor> tensors;
    for (std::size_t i = 0; i < kTensors; ++i) {
      tensors.push_back((at::arange(kSide * kSide, at::kFloat).remainder(7 + static_cast<double>(i)) / 10 - 0.3)
                            .view({kSide, kSide})
                            .to(device_));
    }
    for (int i = 0; i < kSteps; ++i) {
      const auto place = random.below(draw++, kTensors);
      const at::Tensor& b = tensors[random.below(draw++, kTensors)];
      const at::Tensor& c = tensors[random.below(draw++, kTensors)];
      const std::uint64_t operation = random.below(draw++, 13);
      const std::uint64_t stream = random.below(draw++, 1 << 20);
      if (streams_.empty()) {
        tensors[place] = step(operation, tensors[place], b, c);
        continue;
      }
      const c10::Stream& here = streams_[stream % streams_.size()];
      const c10::StreamGuard guard(here);
      if (waits_) all_before(here);
      for (const at::Tensor& each : {tensors[place], b, c}) at::Tensor(each).record_stream(here);
      tensors[place] = step(operation, tensors[place], b, c);
    }
    if (!streams_.empty()) fake_accelerator().synchronize_device();
    return tensors;
  }

 private:
  void all_before(const c10::Stream& here) {
    for (const c10::Stream& other : streams_) {
      c10::Event event(c10::DeviceType::PrivateUse1);
      event.record(other);
      event.block(here);
    }
  }

  c10::Device device_;
  bool waits_;
  std::vector<c10::Stream> streams_;
};

void expect_the_cpus_bits(int streams) {
  const c10::Device device = prepared_device();
  race_report();
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const auto expected = Machine(c10::kCPU, 0, true).run(seed);
    const auto actual = Machine(device, streams, true).run(seed);
    for (std::size_t i = 0; i < kTensors; ++i) EXPECT_TRUE(same_bits(expected[i], actual[i])) << "seed " << seed;
    EXPECT_EQ(race_report(), "") << "seed " << seed;
  }
}

TEST(OperatorSequences, HaveTheCpusBits) { expect_the_cpus_bits(1); }
TEST(OperatorSequences, HaveTheCpusBitsOnStreamsThatWait) { expect_the_cpus_bits(3); }

TEST(OperatorSequences, RaceOnStreamsThatDoNotWait) {
  const c10::Device device = prepared_device();
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    race_report();
    Machine(device, 3, false).run(seed);
    EXPECT_NE(race_report(), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace everstep::accelerator
