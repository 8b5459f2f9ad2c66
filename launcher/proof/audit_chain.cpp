#include <algorithm>
#include <map>
#include <tuple>

#include "launcher/proof/audit.h"

namespace everstep::launcher {
namespace {

using storage::Head;

std::string name_of(const Head& head) {
  return to_string(head.checkpoint) + " (commit " + std::to_string(head.sequence) + ")";
}

class ChainAudit {
 public:
  // Ascending by sequence.
  ChainAudit(const std::vector<Head>& records, AuditReport& report) : records_(records), report_(report) {}

  void run() {
    for (std::size_t i = 0; i < records_.size(); ++i) {
      check_identity(records_[i]);
      check_descent(records_[i]);
      if (i > 0) check_pair(records_[i - 1], records_[i]);
    }
  }

 private:
  void violated(const Head& head, const std::string& what) {
    report_.violations.push_back({Proof::kChain, name_of(head), what});
  }

  void check_identity(const Head& head) {
    const Head& newest = records_.back();
    if (head.job != newest.job || head.lineage != newest.lineage) violated(head, "is of another job");
    // One leader may follow another within a generation. Whoever was followed must not come back.
    std::vector<std::uint32_t>& committers = committers_[head.checkpoint.generation];
    if (!committers.empty() && committers.back() == head.writer.author) return;
    if (std::find(committers.begin(), committers.end(), head.writer.author) != committers.end()) {
      violated(head, "is the work of a committer of generation " + std::to_string(head.checkpoint.generation.value) +
                         " that another had followed");
    }
    committers.push_back(head.writer.author);
  }

  // A checkpoint that was removed since leaves a gap in what is kept, not in the chain: its number is missing.
  void check_pair(const Head& before, const Head& head) {
    if (head.sequence == before.sequence) {
      violated(head, "has the number of " + name_of(before) + ": two were committed where one could be");
      return;
    }
    if (head.sequence == before.sequence + 1 && head.previous != before.manifest) {
      violated(head, "does not follow " + name_of(before) + ", which has the number before");
    }
    if (head.checkpoint.generation < before.checkpoint.generation) {
      violated(head, "is of an older generation than " + name_of(before));
    }
  }

  void check_descent(const Head& head) {
    if (head.sequence > 1 && !head.previous) violated(head, "does not say what was committed before it");
    if (!head.parent) {
      if (head.sequence > 1) violated(head, "descends from nothing, though it is not the first");
      return;
    }
    const Head* const parent = find(*head.parent);
    if (head.parent != head.previous) note_fallback(head, parent);
    if (parent == nullptr) return;  // removed since
    if (parent->sequence >= head.sequence) violated(head, "descends from a later one, " + name_of(*parent));
    if (parent->checkpoint.position >= head.checkpoint.position) {
      violated(head, "is not further than " + name_of(*parent) + ", from which it descends");
    }
  }

  void note_fallback(const Head& head, const Head* parent) {
    const Head* const left = head.previous ? find(*head.previous) : nullptr;
    const auto known = [](const Head* one) { return one == nullptr ? "one that was removed since" : name_of(*one); };
    report_.fallbacks.push_back(name_of(head) + " goes on from " + known(parent) + "; left behind: " + known(left));
  }

  const Head* find(const storage::Digest& manifest) const {
    const auto found =
        std::find_if(records_.begin(), records_.end(), [&](const Head& record) { return record.manifest == manifest; });
    return found == records_.end() ? nullptr : &*found;
  }

  const std::vector<Head>& records_;
  AuditReport& report_;
  std::map<Generation, std::vector<std::uint32_t>> committers_;  // in the order in which they came
};

}  // namespace

void audit_chain(std::vector<Head> records, AuditReport& report) {
  const auto order = [](const Head& head) { return std::tuple(head.sequence, to_string(head.manifest)); };
  std::sort(records.begin(), records.end(), [&](const Head& a, const Head& b) { return order(a) < order(b); });
  records.erase(std::unique(records.begin(), records.end()), records.end());
  report.kept = std::ssize(records);
  report.commits = records.empty() ? 0 : records.back().sequence;
  ChainAudit(records, report).run();
}

}  // namespace everstep::launcher
