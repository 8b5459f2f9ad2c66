#pragma once

#include <functional>
#include <utility>

#include "trainer/loop/stop_requests.h"

namespace everstep::trainer {

// Ends a run at a window's end when the function says so at an update.
class AskedStops final : public StopRequests {
 public:
  explicit AskedStops(std::function<bool()> asked) : asked_(std::move(asked)) {}

  WindowStop at_window_end() override { return asked_() ? WindowStop::kSaveAndEnd : WindowStop::kNo; }
  bool start_round(std::int64_t, std::chrono::milliseconds) override { return true; }
  std::optional<std::int64_t> certain_round() override { return std::nullopt; }
  std::optional<std::int64_t> last_round() override { return std::nullopt; }

 private:
  std::function<bool()> asked_;
};

}  // namespace everstep::trainer
