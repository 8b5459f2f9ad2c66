#include "elastic/sim/copies.h"

#include <algorithm>

namespace everstep::elastic::sim {

Copies::Copies(const scheduler::Plan& plan, const WorkerId& self, bool keeps_one) : kept_(keeps_one ? 1 : 2) {
  for (int stage = 0; stage < static_cast<int>(plan.guards.size()); ++stage) {
    const auto& guards = plan.guards[stage];
    if (std::find(guards.begin(), guards.end(), self) != guards.end()) guarded_.insert(stage);
  }
}

// A stop inside the window may have left gradients and minibatches of it, which do not belong to its beginning.
void Copies::keep(const TrainingState& state) {
  TrainingState copy = state;
  copy.position = {state.version * kWindow};
  copy.gradients.clear();
  copy.is_spoilt = false;
  std::erase_if(copy.history, [&](const Consumed& one) { return one.position >= copy.position.value; });
  versions_[state.version].owned = std::move(copy);
  forget_all_but_two();
}

void Copies::take(const CopyRecord& copy) {
  versions_[copy.state.version].guarded.insert_or_assign(copy.stage, copy.state);
  forget_all_but_two();
}

void Copies::forget_all_but_two() {
  while (versions_.size() > kept_) versions_.erase(versions_.begin());
}

bool Copies::is_guarding(std::int64_t version) const {
  if (guarded_.empty()) return true;
  const auto found = versions_.find(version);
  return found != versions_.end() && found->second.guarded.size() == guarded_.size();
}

std::vector<HeldCopy> Copies::held(Generation generation) const {
  std::vector<HeldCopy> all;
  for (const auto& [number, version] : versions_) {
    const bool guards = !guarded_.empty() && is_guarding(number);
    if (version.owned || guards) all.push_back({generation, {number * kWindow}, version.owned.has_value(), guards});
  }
  return all;
}

std::optional<TrainingState> Copies::merged(std::int64_t version) const {
  const auto found = versions_.find(version);
  if (found == versions_.end()) return std::nullopt;
  std::optional<TrainingState> state = found->second.owned;
  if (!is_guarding(version)) return state;
  for (const auto& [stage, guarded] : found->second.guarded) {
    if (!state) state = guarded;
    state->blocks.insert(guarded.blocks.begin(), guarded.blocks.end());
  }
  return state;
}

}  // namespace everstep::elastic::sim
