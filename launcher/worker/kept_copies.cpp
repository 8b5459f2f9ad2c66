#include "launcher/worker/kept_copies.h"

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

std::vector<elastic::HeldCopy> KeptCopies::held(Generation generation) const {
  std::vector<elastic::HeldCopy> all;
  if (!states) return all;
  for (const trainer::StateCopies::Held& held : states->held()) {
    all.push_back({generation, {held.version.value * window}, held.complete.owned, held.complete.guarded});
  }
  return all;
}

std::shared_ptr<const trainer::CopiedState> KeptCopies::at(Position base, Position committed) const {
  const auto found = states ? states->at({base.value / window}) : nullptr;
  if (!found) return nullptr;
  return with_untold_history(*found, uncommitted, committed, window);
}

std::shared_ptr<const trainer::HeldState> KeptGroup::at(const elastic::GenerationRecord& next,
                                                        Position committed) const {
  const elastic::Base& base = next.base;
  if (!state || base.kind != elastic::Base::Kind::kSums) return nullptr;
  if (what != elastic::KeptSums{next.from->attempt.generation, base.position, base.group, base.rounds}) return nullptr;
  return with_untold_history(*state, uncommitted, committed, window);
}

}  // namespace everstep::launcher
