#include "elastic/brain/speed_book.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace everstep::elastic {
namespace {

constexpr int kUpdatesWanted = 8;
constexpr double kNoticed = 1.5;  // less is as usual: profiles are not exact
constexpr double kClearly = 1.25;
constexpr double kSlowest = 100;
constexpr int kMostTrustDoublings = 6;

// In quarters: plans need not follow every breath.
double rounded(double slowness) { return slowness < kNoticed ? 1 : std::min(std::round(4 * slowness) / 4, kSlowest); }

}  // namespace

void SpeedBook::look(const Situation& seen, Tick now) {
  std::erase_if(beliefs_, [&](const auto& belief) { return !seen.has(belief.first); });
  if (!seen.generation) return;
  const std::vector<WorkerId>& workers = seen.generation->roster.plan.workers;
  if (seen.progress) learn(*seen.progress, workers);
  for (auto& [id, belief] : beliefs_) {
    if (belief.is_measured && std::ranges::find(workers, id) != workers.end()) {
      belief.measured_at = now;
    } else if (belief.slowness > 1 && now - belief.measured_at >= trust_
                                                                      << std::min(belief.tries, kMostTrustDoublings)) {
      belief.slowness = 1;
      ++belief.tries;
    }
  }
}

void SpeedBook::learn(const ProgressRecord& progress, const std::vector<WorkerId>& workers) {
  if (progress.updates < kUpdatesWanted || progress.slowness_percent.size() != workers.size()) return;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const double measured = progress.slowness_percent[i] / 100.0;
    Belief& belief = beliefs_[workers[i]];
    belief.is_measured = measured > 0;
    if (!belief.is_measured) continue;
    if (measured > belief.slowness * kClearly || measured * kClearly < belief.slowness) {
      belief.slowness = rounded(measured);
    }
    if (belief.slowness == 1) belief.tries = 0;
  }
}

double SpeedBook::slowness(const WorkerId& id) const {
  const auto found = beliefs_.find(id);
  return found == beliefs_.end() ? 1 : found->second.slowness;
}

std::map<WorkerId, double> SpeedBook::slow() const {
  std::map<WorkerId, double> slow;
  for (const auto& [id, belief] : beliefs_) {
    if (belief.slowness > 1) slow.emplace(id, belief.slowness);
  }
  return slow;
}

}  // namespace everstep::elastic
