#include "trainer/checkpoint.h"

#include "base/check.h"

namespace everstep::trainer {

std::string_view to_string(CutKind kind) {
  switch (kind) {
    case CutKind::kFlush:
      return "flush";
    case CutKind::kLive:
      return "live";
    case CutKind::kInWindow:
      return "in-window";
  }
  EVERSTEP_CHECK(false, "a kind of cut without a name");
}

std::optional<int> first_cut_inside(const CheckpointPolicy& policy, int rounds) {
  if (policy.every_rounds <= 0 || policy.every_rounds >= rounds) return std::nullopt;
  return policy.every_rounds - 1;
}

CutChoice choose_cut(const CheckpointPolicy& policy, Version made, int rounds, int next_rounds, bool all_idle) {
  const bool by_updates = policy.every_updates > 0 && made.value % policy.every_updates == 0;
  const bool by_rounds = policy.every_rounds > 0 && rounds % policy.every_rounds == 0;
  CutChoice choice;
  choice.at_update = by_updates || by_rounds;
  if (!choice.at_update) choice.after_round = first_cut_inside(policy, next_rounds);
  const bool due = choice.at_update || choice.after_round;
  if (!due || all_idle) return choice;
  CutChoice none;
  none.skipped = true;
  return none;
}

}  // namespace everstep::trainer
