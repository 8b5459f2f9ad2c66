#pragma once

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/tick.h"
#include "elastic/keys.h"
#include "trainer/ucx/lifeline/lifeline_news.h"

namespace everstep::launcher {

// The lifelines of a generation that broke off: the first death ended its transport, but others may follow, and whoever
// waits for word of them would wait in vain. While there is such an object, the end of this process is seen as a death
// by the others.
class OldLines {
 public:
  // For as long as deaths are likely to belong together.
  static constexpr Tick kWatched = kTicksPerSecond;
  static constexpr Tick kLookEvery = kTicksPerSecond / 100;

  OldLines(const elastic::Attempt& attempt, std::vector<WorkerId> connected,
           std::shared_ptr<trainer::LifelineNews> news, Tick now)
      : attempt_(attempt), connected_(std::move(connected)), news_(std::move(news)), end_(now + kWatched) {}
  ~OldLines() { news_->say_goodbye(); }
  OldLines(const OldLines&) = delete;
  OldLines& operator=(const OldLines&) = delete;

  const elastic::Attempt& attempt() const { return attempt_; }
  bool is_over(Tick now) const { return now >= end_; }

  // Those that were not named before.
  std::vector<WorkerId> newly_dead() {
    std::vector<WorkerId> ids;
    for (const int worker : news_->look_for_dead()) {
      if (told_.insert(worker).second) ids.push_back(connected_[worker]);
    }
    return ids;
  }

 private:
  elastic::Attempt attempt_;
  std::vector<WorkerId> connected_;  // as the transport numbered them
  std::shared_ptr<trainer::LifelineNews> news_;
  Tick end_;
  std::set<int> told_;
};

}  // namespace everstep::launcher
