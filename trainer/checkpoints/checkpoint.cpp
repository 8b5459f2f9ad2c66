#include "trainer/checkpoints/checkpoint.h"

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

std::optional<int> first_cut_inside(const CheckpointPolicy& policy, std::int64_t rounds_done, int rounds) {
  if (policy.every_rounds <= 0) return std::nullopt;
  const std::int64_t until_due = policy.every_rounds - rounds_done % policy.every_rounds;
  if (until_due >= rounds) return std::nullopt;
  return static_cast<int>(until_due - 1);
}

DueCut due_cut(const CheckpointPolicy& policy, Version made, std::int64_t rounds_done, int next_rounds) {
  const bool by_updates = policy.every_updates > 0 && made.value % policy.every_updates == 0;
  const bool by_rounds = policy.every_rounds > 0 && rounds_done % policy.every_rounds == 0;
  DueCut due;
  due.at_update = by_updates || by_rounds;
  if (!due.at_update) due.after_round = first_cut_inside(policy, rounds_done, next_rounds);
  return due;
}

}  // namespace everstep::trainer
