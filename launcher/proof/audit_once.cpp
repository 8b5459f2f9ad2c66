#include <algorithm>
#include <bit>
#include <utility>

#include "launcher/proof/audit.h"
#include "scheduler/plan_text.h"

namespace everstep::launcher {
namespace {

using storage::LedgerEntry;
using storage::LedgerSegment;
using storage::Manifest;

std::string name_of(const LedgerSegment& segment) {
  return "the ledger segment of positions " + std::to_string(segment.begin.value) + " to " +
         std::to_string(segment.end.value);
}

// Whether the ledger can be right about the windows that began on provisional weights: the window before must have made
// them, under the same plan; and if it did, in a pipeline that was not drained, nothing else can have been begun on.
class ProvisionalAudit {
 public:
  // What is wrong with the next entry; null: nothing.
  const char* take(const LedgerEntry& entry, const scheduler::Plan& plan) {
    const bool begins = entry.window != here_.window;
    if (begins) before_ = std::move(here_);
    const bool goes_on = !begins && entry.generation == here_.generation && entry.plan == here_.plan;
    const bool says_otherwise = goes_on && entry.provisional != here_.provisional;
    const bool is_whole = begins || (goes_on && here_.is_whole);
    here_ = {entry.window, entry.generation, entry.plan, entry.provisional, is_whole};
    const bool follows = before_.window == entry.window - 1 && before_.plan == entry.plan;
    if (says_otherwise) return "says of provisional weights what the range before it denies";
    if (entry.provisional && plan.provisional == 0) return "began on provisional weights, which its plan never makes";
    if (entry.provisional && !follows)
      return "began on provisional weights, which the window before it cannot have made";
    const bool in_full_pipeline = is_asynchronous(plan.kind) && !entry.flushed && follows && before_.is_whole;
    if (!in_full_pipeline || entry.provisional || !provisional_minibatches(request_of(plan))) return nullptr;
    return "began on no provisional weights, but the window before it made some";
  }

 private:
  // A window as its last entry tells it; whole if one generation ran all of it.
  struct Seen {
    std::int64_t window = -1;
    Generation generation;
    std::string plan;
    bool provisional = false;
    bool is_whole = false;
  };

  Seen before_;
  Seen here_;
};

class OnceAudit {
 public:
  OnceAudit(const Manifest& newest, AuditReport& report)
      : newest_(newest), window_(newest.plan.window), report_(report) {}

  void take(const LedgerSegment& segment) {
    ++report_.segments;
    if (segment.begin != position_) {
      violated(name_of(segment),
               (segment.begin < position_ ? "repeats what ended at position " : "leaves a gap behind position ") +
                   std::to_string(position_.value));
    }
    if (const Status checked = check(segment, window_); !checked) violated(name_of(segment), checked.error().message);
    for (const LedgerEntry& entry : segment.entries) take(entry);
    position_ = segment.end;
  }

  void finish() {
    const std::string name = to_string(newest_.name);
    if (position_ != newest_.name.position) {
      violated(name, "stands at position " + std::to_string(newest_.name.position.value) + ", but its ledger ends at " +
                         std::to_string(position_.value));
    }
    if (newest_.skipped != skipped_) violated(name, "names other skipped windows than its ledger");
    if (newest_.flushed != flushed_) violated(name, "names other windows that began drained than its ledger");
    compare_unfinished_window();
    report_.minibatches = std::ssize(losses_);
    report_.skipped = std::ssize(skipped_);
  }

 private:
  void violated(std::string object, std::string what) {
    report_.violations.push_back({Proof::kOnce, std::move(object), std::move(what)});
  }

  void take(const LedgerEntry& entry) {
    const std::string name = "the ledger's entry of window " + std::to_string(entry.window) + ", minibatches [" +
                             std::to_string(entry.first) + ", " + std::to_string(entry.end) + ")";
    const auto plan = scheduler::parse_plan_text(entry.plan);
    if (!plan) violated(name, plan.error().message);
    if (plan && plan->window != window_) violated(name, "was trained with a window of another size");
    if (const char* const wrong = plan ? provisional_.take(entry, *plan) : nullptr) violated(name, wrong);
    if (entry.flushed && entry.first == 0) flushed_.push_back(entry.window);
    if (entry.skipped && (skipped_.empty() || skipped_.back() != entry.window)) skipped_.push_back(entry.window);
    losses_.insert(losses_.end(), entry.losses.begin(), entry.losses.end());

    std::vector<AuditedStretch>& stretches = report_.stretches;
    const std::int64_t start = entry.window * window_;
    for (const int minibatch : entry.left_out) report_.left_out.push_back({start + minibatch});
    if (!stretches.empty() && entry.generation < stretches.back().generation) {
      if (plan && is_group_share(entry, *plan, stretches.back())) {
        report_.kept_minibatches += entry.end - entry.first;
      } else {
        violated(name, "is of generation " + std::to_string(entry.generation.value) + ", after generation " +
                           std::to_string(stretches.back().generation.value));
      }
    } else if (stretches.empty() || stretches.back().generation != entry.generation ||
               stretches.back().plan != entry.plan) {
      stretches.push_back({entry.generation, entry.plan, 0, {start + entry.first}, {}});
    }
    stretches.back().to = {start + entry.end};
    if (entry.end == window_) ++stretches.back().updates;
  }

  // Whether it is what a group of an older generation kept of the window that the present one began with: as much as
  // one group, the same for all of the window, has in a super-round.
  bool is_group_share(const LedgerEntry& entry, const scheduler::Plan& plan, const AuditedStretch& present) {
    if (entry.window != present.from.value / window_) return false;
    const int size = round_size(request_of(plan));
    const int group = entry.first / size % plan.width;
    const bool is_one_share =
        entry.first % size == 0 && entry.end == std::min(entry.first + size, window_) && plan.width > 1;
    const GroupShare share{entry.window, entry.generation, group};
    if (share_.window != entry.window) share_ = share;
    return is_one_share && share_ == share;
  }

  // The manifest has the losses of an unfinished window too.
  void compare_unfinished_window() {
    const auto& stored = newest_.window_losses;
    const auto begin = std::ssize(losses_) - std::ssize(stored);
    const auto same_bits = [](const storage::StoredLoss& loss, double in_ledger) {
      return std::bit_cast<std::uint64_t>(loss.loss) == std::bit_cast<std::uint64_t>(in_ledger);
    };
    const bool is_same =
        begin >= 0 && std::equal(stored.begin(), stored.end(), losses_.begin() + begin, losses_.end(), same_bits);
    if (!is_same) violated(to_string(newest_.name), "has other losses of its unfinished window than its ledger");
  }

  struct GroupShare {
    std::int64_t window = 0;
    Generation generation;
    int group = 0;

    bool operator==(const GroupShare&) const = default;
  };

  const Manifest& newest_;
  const int window_;
  AuditReport& report_;
  Position position_;
  std::vector<std::int64_t> flushed_;
  std::vector<std::int64_t> skipped_;
  std::vector<double> losses_;
  GroupShare share_{-1, {}, 0};  // the last one
  ProvisionalAudit provisional_;
};

}  // namespace

void audit_once(const Manifest& newest, const std::vector<LedgerSegment>& ledger, AuditReport& report) {
  OnceAudit audit(newest, report);
  for (const LedgerSegment& segment : ledger) audit.take(segment);
  audit.finish();
}

}  // namespace everstep::launcher
