#include "launcher/worker/generation_copies.h"

#include <utility>

namespace everstep::launcher {
namespace {

// The state with all of the past that no checkpoint up to `committed` tells.
template <typename State>
std::shared_ptr<const State> with_untold_history(const State& found, const std::vector<trainer::WindowHistory>& earlier,
                                                 Position committed, int window) {
  auto state = std::make_shared<State>(found);
  std::vector<trainer::WindowHistory>& history = state->resume.history;
  history.insert(history.begin(), earlier.begin(), earlier.end());
  history = untold_history(std::move(history), committed, state->resume.position, window);
  return state;
}

}  // namespace

std::vector<elastic::HeldCopy> GenerationCopies::held(Generation generation) const {
  std::vector<elastic::HeldCopy> all;
  if (!states) return all;
  for (const trainer::StateCopies::CopiedVersion& copy : states->versions()) {
    all.push_back({generation, {copy.version.value * window}, copy.complete.owned, copy.complete.guarded});
  }
  return all;
}

std::shared_ptr<const trainer::CopiedState> GenerationCopies::at(Position origin, Position committed) const {
  const auto found = states ? states->at({origin.value / window}) : nullptr;
  if (!found) return nullptr;
  return with_untold_history(*found, uncommitted, committed, window);
}

std::shared_ptr<const trainer::EndState> GroupSums::at(const elastic::GenerationRecord& next,
                                                       Position committed) const {
  const elastic::Origin& origin = next.origin;
  if (!state || origin.kind != elastic::Origin::Kind::kSums) return nullptr;
  if (what != elastic::HeldSums{next.from->attempt.generation, origin.position, origin.group, origin.rounds})
    return nullptr;
  return with_untold_history(*state, uncommitted, committed, window);
}

}  // namespace everstep::launcher
