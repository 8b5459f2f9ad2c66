#include "launcher/elastic/kept_copies.h"

#include <utility>

namespace everstep::launcher {

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
  auto state = std::make_shared<trainer::CopiedState>(*found);
  std::vector<trainer::WindowHistory>& history = state->resume.history;
  history.insert(history.begin(), uncommitted.begin(), uncommitted.end());
  history = untold_history(std::move(history), committed, base, window);
  return state;
}

}  // namespace everstep::launcher
