#include "launcher/supervise/run_statistics.h"

#include <algorithm>

namespace everstep::launcher {
namespace {

double ratio(double value, double seconds) { return seconds > 0 ? value / seconds : 0; }

}  // namespace

void RunStatistics::add(const trainer::StepReport& report) { updates_.push_back({report.at, report.busy}); }

double RunStatistics::seconds() const { return to_seconds(end_of(updates_.size()) - start_); }

double RunStatistics::last_seconds() const {
  return updates_.empty() ? 0 : to_seconds(end_of(updates_.size()) - end_of(updates_.size() - 1));
}

double RunStatistics::last_tokens_per_s() const { return ratio(static_cast<double>(tokens_per_step_), last_seconds()); }

double RunStatistics::recent_seconds_per_step() const {
  constexpr std::size_t kRecent = 20;
  const std::size_t last = updates_.size();
  const std::size_t first = last > kRecent ? last - kRecent : std::min<std::size_t>(1, last / 2);
  return ratio(to_seconds(end_of(last) - end_of(first)), static_cast<double>(last - first));
}

Rate RunStatistics::steady() const {
  const std::size_t all = updates_.size();
  const std::size_t first = std::min(std::clamp<std::size_t>(all / 10, 1, 10), all > 1 ? all - 1 : 0);
  return between(first, all - first >= 4 ? all - 1 : all);
}

Rate RunStatistics::between(std::size_t first, std::size_t last) const {
  double busy_seconds = 0;
  for (std::size_t i = first; i < last; ++i) busy_seconds += updates_[i].busy * to_seconds(updates_[i].at - end_of(i));
  const double seconds = to_seconds(end_of(last) - end_of(first));
  return {ratio(static_cast<double>(last - first) * static_cast<double>(tokens_per_step_), seconds),
          ratio(busy_seconds, seconds)};
}

}  // namespace everstep::launcher
