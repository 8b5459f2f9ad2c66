#include "launcher/rehearse/chaos/checks.h"

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "base/text.h"
#include "elastic/keys.h"
#include "elastic/records.h"
#include "launcher/cli/long_work.h"
#include "launcher/cli/signal_watch.h"
#include "launcher/rehearse/chaos/chaos_job.h"

namespace everstep::launcher::chaos {
namespace {

using elastic::KeyValue;

std::vector<KeyValue> below(const std::vector<KeyValue>& keys, const std::string& prefix) {
  std::vector<KeyValue> found;
  std::copy_if(keys.begin(), keys.end(), std::back_inserter(found),
               [&](const KeyValue& item) { return item.key.starts_with(prefix); });
  return found;
}

struct Commit {
  elastic::HeadRecord head;
  elastic::Revision when = 0;
};

// etcd's log, in the order of its keys.
std::vector<Commit> commits_of(const std::vector<KeyValue>& keys, std::vector<std::string>& wrong) {
  std::vector<Commit> commits;
  for (const KeyValue& item : below(keys, elastic::Keys(kJobName).past_heads())) {
    auto head = elastic::parse_head_record(item.value);
    if (!head) {
      wrong.push_back(item.key + " cannot be read");
    } else {
      commits.push_back({std::move(*head), item.created});
    }
  }
  return commits;
}

// When each generation was opened.
std::map<Generation, elastic::Revision> openings_of(const std::vector<KeyValue>& keys,
                                                    std::vector<std::string>& wrong) {
  std::map<Generation, elastic::Revision> openings;
  for (const KeyValue& item : below(keys, elastic::Keys(kJobName).past_generations())) {
    const auto record = elastic::parse_generation(item.value);
    if (!record) {
      wrong.push_back(item.key + " cannot be read");
    } else {
      openings.emplace(record->roster.attempt.generation, item.created);
    }
  }
  return openings;
}

std::string text_of(const Commit& commit) {
  return "commit " + std::to_string(commit.head.sequence) + " of generation " +
         std::to_string(commit.head.generation.value);
}

std::string last_line(const std::string& text) {
  std::istringstream lines(text);
  std::string last;
  for (std::string line; std::getline(lines, line);) last = line.empty() ? last : line;
  return last;
}

std::string seen_by(Proof proof, const AuditReport& report) {
  switch (proof) {
    case Proof::kOnce:
      return counted(report.minibatches, "minibatch", "minibatches") + ", each exactly once";
    case Proof::kChain:
      return counted(report.commits, "commit", "commits") + " without a gap";
    case Proof::kRestore:
      break;
  }
  return counted(report.kept, "checkpoint", "checkpoints") + ", " + counted(report.files, "file", "files") + ", " +
         size_text(report.bytes);
}

}  // namespace

Finding check_fence(const std::vector<KeyValue>& keys) {
  std::vector<std::string> wrong;
  const std::vector<Commit> commits = commits_of(keys, wrong);
  const auto openings = openings_of(keys, wrong);
  for (std::size_t i = 0; i < commits.size(); ++i) {
    const Commit& commit = commits[i];
    const auto next = openings.upper_bound(commit.head.generation);
    if (next != openings.end() && next->second < commit.when) {
      wrong.push_back(text_of(commit) + " came after generation " + std::to_string(next->first.value) + " was open");
    }
    if (i == 0) continue;
    const elastic::HeadRecord& before = commits[i - 1].head;
    if (commit.head.generation < before.generation)
      wrong.push_back(text_of(commit) + " follows one of a newer generation");
    if (commit.head.position <= before.position) wrong.push_back(text_of(commit) + " goes back");
  }
  if (commits.empty()) wrong.emplace_back("etcd knows of no commit");
  return judge(Promise::kFence, wrong,
               counted(std::ssize(commits), "commit", "commits") + " in " +
                   counted(std::ssize(openings), "generation", "generations") + ", none after the next was open");
}

std::vector<Finding> check_audit(const AuditReport& report, const std::vector<KeyValue>& keys) {
  constexpr std::pair<Proof, Promise> kProofs[] = {
      {Proof::kOnce, Promise::kOnce}, {Proof::kChain, Promise::kChain}, {Proof::kRestore, Promise::kRestore}};
  std::vector<Finding> findings;
  for (const auto& [proof, promise] : kProofs) {
    std::vector<std::string> wrong;
    for (const Violation& violation : report.violations) {
      if (violation.proof == proof) wrong.push_back(violation.object + " " + violation.what);
    }
    if (proof == Proof::kChain) {
      const std::vector<Commit> commits = commits_of(keys, wrong);
      const std::int64_t last = commits.empty() ? 0 : commits.back().head.sequence;
      if (last != report.commits) {
        wrong.push_back("etcd knows of " + counted(last, "commit", "commits") + ", the files of " +
                        std::to_string(report.commits));
      }
    }
    findings.push_back(judge(promise, wrong, seen_by(proof, report)));
  }
  return findings;
}

Finding check_replay(int wait_status, const std::string& output) {
  const std::string said = last_line(output);
  if (wait_status == 0) return {Promise::kBits, true, said};
  return {Promise::kBits, false, said + " (" + end_text(wait_status) + ")"};
}

std::vector<std::string> uses_too_much(const std::string& who, const ProcessUse& now, const ProcessUse& first,
                                       const Allowance& allowance) {
  std::vector<std::string> wrong;
  const auto compare = [&](const std::string& what, std::int64_t is, std::int64_t was, std::int64_t more) {
    if (is <= was + more) return;
    wrong.push_back(who + " has " + grouped(is) + " " + what + ", at first " + grouped(was));
  };
  compare("bytes in memory", now.resident_bytes, first.resident_bytes, allowance.resident_bytes);
  compare("descriptors", now.descriptors, first.descriptors, allowance.descriptors);
  compare("threads", now.threads, first.threads, allowance.threads);
  return wrong;
}

std::vector<std::string> keys_left(const std::vector<KeyValue>& keys) {
  const elastic::Keys names(kJobName);
  std::vector<std::string> wrong;
  for (const std::string& prefix :
       {names.members(), names.leader(), names.all_prepared(), names.all_promises(), names.all_suspects()}) {
    for (const KeyValue& item : below(keys, prefix)) wrong.push_back("key " + item.key + " is left");
  }
  const auto generation = below(keys, names.generation());
  const auto record =
      generation.empty() ? elastic::parse_generation("") : elastic::parse_generation(generation.front().value);
  if (!record) return wrong;
  const std::string last = to_string(record->roster.attempt) + "/";
  for (const std::string& prefix : {names.all_held(), names.all_ready(), names.acks()}) {
    for (const KeyValue& item : below(keys, prefix)) {
      if (!item.key.substr(prefix.size()).starts_with(last)) wrong.push_back("key " + item.key + " is left");
    }
  }
  return wrong;
}

std::vector<std::string> files_left(const std::filesystem::path& checkpoints, const AuditReport& report, int keeps) {
  std::vector<std::string> wrong;
  if (report.kept > keeps) {
    wrong.push_back(counted(report.kept, "checkpoint is", "checkpoints are") + " kept, not " + std::to_string(keeps));
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(checkpoints, error)) {
    if (entry.path().extension() == ".tmp") wrong.push_back(entry.path().filename().string() + " is left");
  }
  return wrong;
}

}  // namespace everstep::launcher::chaos
