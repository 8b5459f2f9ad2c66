#pragma once

#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/tick.h"
#include "elastic/keys.h"
#include "trainer/wire/lifeline_news.h"

namespace everstep::launcher {

// The lifelines of a generation: who of it died. They outlive the run: a first death ends its transport, but others may
// follow, and whoever waits for word of them would wait in vain. While there is such an object, the end of this process
// is seen as a death by the others.
class PeerLines {
 public:
  // For as long as deaths are likely to belong together.
  static constexpr Tick kWatched = kTicksPerSecond;
  static constexpr Tick kLookEvery = kTicksPerSecond / 100;

  PeerLines(const elastic::Attempt& attempt, std::vector<WorkerId> connected,
            std::shared_ptr<trainer::LifelineNews> news)
      : attempt_(attempt), connected_(std::move(connected)), news_(std::move(news)) {}
  ~PeerLines() { news_->say_goodbye(); }
  PeerLines(const PeerLines&) = delete;
  PeerLines& operator=(const PeerLines&) = delete;

  const elastic::Attempt& attempt() const { return attempt_; }

  // The transport has ended: nobody else looks for deaths any more.
  void outlive_transport(Tick now) { end_ = now + kWatched; }
  bool is_over(Tick now) const { return end_ && now >= *end_; }

  // Those that were not named before.
  std::vector<WorkerId> newly_dead() {
    std::vector<WorkerId> ids;
    for (const int worker : end_ ? news_->look_for_dead() : news_->dead()) {
      if (told_.insert(worker).second) ids.push_back(connected_[worker]);
    }
    return ids;
  }

 private:
  elastic::Attempt attempt_;
  std::vector<WorkerId> connected_;  // as the transport numbered them
  std::shared_ptr<trainer::LifelineNews> news_;
  std::optional<Tick> end_;
  std::set<int> told_;
};

}  // namespace everstep::launcher
