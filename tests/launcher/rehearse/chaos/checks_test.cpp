#include "launcher/rehearse/chaos/checks.h"

#include <fstream>

#include <gtest/gtest.h>

#include "elastic/keys.h"
#include "elastic/records.h"
#include "launcher/rehearse/chaos/chaos_job.h"
#include "launcher/rehearse/chaos/worker_use.h"
#include "tests/temporary_directory.h"

namespace everstep::launcher::chaos {
namespace {

using elastic::KeyValue;
using elastic::Revision;

const elastic::Keys& names() {
  static const elastic::Keys keys(kJobName);
  return keys;
}

elastic::Attempt attempt(std::int64_t generation) { return {{generation}, 7}; }

std::string generation_text(std::int64_t generation) {
  elastic::GenerationRecord record;
  record.roster.attempt = attempt(generation);
  record.roster.plan.cuts = {0, 4};
  record.roster.plan.workers = {WorkerId{{1, 2}}};
  record.roster.plan.guards.resize(1);
  return to_text(record);
}

KeyValue opening(std::int64_t generation, Revision when) {
  return {names().past_generation({generation}), generation_text(generation), when, when};
}

KeyValue commit(std::int64_t sequence, std::int64_t generation, std::int64_t position, Revision when) {
  elastic::HeadRecord head;
  head.sequence = sequence;
  head.generation = {generation};
  head.position = {position};
  head.manifest = std::string(64, 'a');
  head.document = "document";
  return {names().past_head(sequence), to_text(head), when, when};
}

TEST(ChaosChecks, FenceHoldsForCommitsBeforeTheNextGeneration) {
  const Finding finding =
      check_fence({commit(1, 1, 80, 20), commit(2, 2, 160, 40), opening(1, 10), opening(2, 30), opening(3, 50)});
  EXPECT_TRUE(finding.holds) << finding.text;
  EXPECT_EQ(finding.text, "2 commits in 3 generations, none after the next was open");
}

TEST(ChaosChecks, FenceIsBrokenByACommitOfAnOldGeneration) {
  const Finding late = check_fence({commit(1, 1, 80, 35), opening(1, 10), opening(2, 30)});
  EXPECT_FALSE(late.holds);
  EXPECT_EQ(late.text, "commit 1 of generation 1 came after generation 2 was open");
  EXPECT_EQ(to_text(late), "FENCE   BROKEN  commit 1 of generation 1 came after generation 2 was open");
  const Finding back = check_fence({commit(1, 2, 80, 35), commit(2, 1, 70, 40), opening(1, 10), opening(2, 30)});
  EXPECT_FALSE(back.holds);
  EXPECT_NE(back.text.find("follows one of a newer generation"), std::string::npos) << back.text;
  EXPECT_NE(back.text.find("goes back"), std::string::npos) << back.text;
  EXPECT_FALSE(check_fence({}).holds);
}

TEST(ChaosChecks, FenceIsBrokenByWhatCannotBeRead) {
  KeyValue damaged = opening(2, 30);
  damaged.value.pop_back();
  const Finding finding = check_fence({commit(1, 1, 80, 20), opening(1, 10), damaged});
  EXPECT_FALSE(finding.holds);
  EXPECT_EQ(finding.text, damaged.key + " cannot be read");
}

TEST(ChaosChecks, AuditIsTakenAtItsWord) {
  AuditReport report;
  report.commits = 1;
  report.minibatches = 80;
  report.violations = {{Proof::kOnce, "minibatch 7", "is there twice"}};
  const auto findings = check_audit(report, {commit(1, 1, 80, 20)});
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[0], (Finding{Promise::kOnce, false, "minibatch 7 is there twice"}));
  EXPECT_EQ(findings[1], (Finding{Promise::kChain, true, "1 commit without a gap"}));
  EXPECT_TRUE(findings[2].holds);
}

TEST(ChaosChecks, CommitsThatTheFilesDoNotKnowAreLost) {
  AuditReport report;
  report.commits = 1;
  const auto findings = check_audit(report, {commit(1, 1, 80, 20), commit(2, 1, 160, 30)});
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[1], (Finding{Promise::kChain, false, "etcd knows of 2 commits, the files of 1"}));
}

TEST(ChaosChecks, BitsAreWhatReplayEndsWith) {
  EXPECT_EQ(check_replay(0, "replay: all bits equal\n\n"), (Finding{Promise::kBits, true, "replay: all bits equal"}));
  constexpr int kExit65 = 65 << 8;
  EXPECT_EQ(check_replay(kExit65, "everstep: replay: the loss differs\n"),
            (Finding{Promise::kBits, false, "everstep: replay: the loss differs (exit code 65)"}));
}

TEST(ChaosChecks, UseMayGrowByTheAllowanceAndNoMore) {
  const ProcessUse first{1000, 10, 5};
  const Allowance allowance{100, 2, 1};
  EXPECT_TRUE(uses_too_much("w1", {1100, 12, 6}, first, allowance).empty());
  EXPECT_EQ(uses_too_much("w1", {1101, 13, 7}, first, allowance),
            (std::vector<std::string>{"w1 has 1,101 bytes in memory, at first 1,000",
                                      "w1 has 13 descriptors, at first 10", "w1 has 7 threads, at first 5"}));
}

TEST(ChaosChecks, ASpareThatTrainsInTheEndMayUseWhatOthersUsedAtFirst) {
  const Allowance allowance{100, 2, 1};
  const std::vector<WorkerUse> first{{"spare", {100, 4, 2}}, {"w1", {1000, 10, 5}}};
  const UseChange grown = use_change(first, {{"spare", {1100, 12, 6}}}, allowance);
  EXPECT_TRUE(grown.wrong.empty());
  EXPECT_EQ(grown.text, "a worker has at most 0 to 0 MiB, 10 to 12 descriptors, 5 to 6 threads");
  EXPECT_EQ(use_change(first, {{"w1", {1000, 10, 5}}, {"spare", {1100, 12, 7}}}, allowance).wrong,
            std::vector<std::string>{"spare has 7 threads, at first 5"});
}

TEST(ChaosChecks, KeysOfTheLastGenerationMayStay) {
  const WorkerId worker{{1, 2}};
  const std::vector<KeyValue> good{{names().generation(), generation_text(3)},
                                   {names().ready(attempt(3), worker), "ready"},
                                   {names().finished(), "finished"}};
  EXPECT_TRUE(keys_left(good).empty());
  std::vector<KeyValue> bad = good;
  bad.push_back({names().ready(attempt(2), worker), "ready"});
  bad.push_back({names().member(worker), "member"});
  EXPECT_EQ(keys_left(bad), (std::vector<std::string>{"key " + names().member(worker) + " is left",
                                                      "key " + names().ready(attempt(2), worker) + " is left"}));
}

TEST(ChaosChecks, FilesAreThoseThatRetentionKeeps) {
  const TemporaryDirectory directory;
  AuditReport report;
  report.kept = 3;
  EXPECT_TRUE(files_left(directory.path(), report, 3).empty());
  std::ofstream(directory.file("HEAD.g3.tmp")) << "half";
  report.kept = 4;
  EXPECT_EQ(files_left(directory.path(), report, 3),
            (std::vector<std::string>{"4 checkpoints are kept, not 3", "HEAD.g3.tmp is left"}));
}

}  // namespace
}  // namespace everstep::launcher::chaos
