#include "trainer/checkpoints/checkpoint.h"

#include <algorithm>

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

std::optional<int> first_cut_inside(const CheckpointPolicy& policy, std::int64_t rounds_done, int rounds,
                                    int before_cut) {
  if (policy.every_rounds <= 0) return std::nullopt;
  const std::int64_t until_due = policy.every_rounds - rounds_done % policy.every_rounds;
  const std::int64_t until_cut = std::max<std::int64_t>(until_due, before_cut);
  if (until_due >= rounds || until_cut >= rounds) return std::nullopt;
  return static_cast<int>(until_cut - 1);
}

DueCut due_cut(const CheckpointPolicy& policy, Version made, std::int64_t rounds_done, int next_rounds,
               int before_cut) {
  const bool by_updates = policy.every_updates > 0 && made.value % policy.every_updates == 0;
  const bool by_rounds = policy.every_rounds > 0 && rounds_done % policy.every_rounds == 0;
  DueCut due;
  due.at_update = by_updates || by_rounds;
  if (due.at_update) return due;
  due.after_round = first_cut_inside(policy, rounds_done, next_rounds, before_cut);
  due.at_update = !due.after_round && first_cut_inside(policy, rounds_done, next_rounds);
  return due;
}

}  // namespace everstep::trainer
