#include "launcher/worker/compute_watch.h"

#include <deque>
#include <utility>

#include "trainer/model/wrapped_stage.h"

namespace everstep::launcher {
namespace {

using trainer::DeviceMemory;
using trainer::DeviceSpan;
using trainer::StageOp;

// What the ops of one stage take on their device. Of the training thread.
class OpsOnDevice {
 public:
  explicit OpsOnDevice(ComputeWatch& watch) : watch_(watch) {}

  void run(DeviceMemory& device, const std::function<void()>& op) {
    count_ended();
    auto span = device.begin_span();
    op();
    if (!span) return;  // it is the host
    span->end();
    spans_.push_back(std::move(span));
    device.mark();  // whoever made the device is told of it
  }

 private:
  void count_ended() {
    while (!spans_.empty()) {
      const auto length = spans_.front()->length();
      if (!length) return;
      watch_.took(*length);
      spans_.pop_front();
    }
  }

  ComputeWatch& watch_;
  std::deque<std::unique_ptr<DeviceSpan>> spans_;
};

}  // namespace

std::unique_ptr<trainer::StageCompute> ComputeWatch::watch(std::unique_ptr<trainer::StageCompute> stage,
                                                           DeviceMemory* device) {
  const auto ops = std::make_shared<OpsOnDevice>(*this);
  return wrap_ops(std::move(stage),
                  [this, device, ops](StageOp op, Position position, const std::function<void()>& run) {
                    op == StageOp::kForward ? begin(position.value) : begin();
                    device != nullptr ? ops->run(*device, run) : run();
                    end();
                  });
}

bool ComputeWatch::makes_progress() {
  const Tick begun = begun_;
  const Tick limit = std::max(shortest_limit_, kPatience * longest_);
  return (begun == 0 || now_() - begun <= limit) && device_.longest_wait() <= limit;
}

void ComputeWatch::begin(std::int64_t position) {
  reached_ = std::max(reached_.load(), position + 1);
  begin();
}

void ComputeWatch::end() {
  last_end_ = now_();
  took(last_end_ - begun_);
  begun_ = 0;
}

}  // namespace everstep::launcher
