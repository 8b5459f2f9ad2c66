#include "launcher/proof/audit.h"

#include <functional>
#include <utility>

#include <gmock/gmock.h>

#include "tests/storage/fakes/sample_manifest.h"

namespace everstep::launcher {
namespace {

using storage::Digest;
using storage::Head;
using storage::LedgerSegment;
using storage::Manifest;
using testing::AllOf;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

auto is_violation(Proof proof, const std::string& object, const std::string& what) {
  return AllOf(Field(&Violation::proof, proof), Field(&Violation::object, HasSubstr(object)),
               Field(&Violation::what, HasSubstr(what)));
}

// Three whole windows and two minibatches, in two segments.
struct Past {
  Manifest manifest = storage::sample_manifest({.version = {3}, .minibatches_into_window = 2});
  std::vector<LedgerSegment> ledger;

  Past() {
    LedgerSegment first = sample_ledger(manifest);
    LedgerSegment second = first;
    first.end = second.begin = {8};
    first.entries.resize(2);
    second.entries.erase(second.entries.begin(), second.entries.begin() + 2);
    ledger = {std::move(first), std::move(second)};
  }

  AuditReport audited() const {
    AuditReport report;
    audit_once(manifest, ledger, report);
    return report;
  }
};

TEST(AuditOnce, CountsAWholePast) {
  const AuditReport report = Past().audited();
  EXPECT_THAT(report.violations, IsEmpty());
  EXPECT_EQ(report.minibatches, 14);
  EXPECT_EQ(report.segments, 2);
  ASSERT_EQ(report.stretches.size(), 1U);
  EXPECT_EQ(report.stretches[0].updates, 3);
  EXPECT_EQ(report.stretches[0].to, Position{14});
}

TEST(AuditOnce, AcceptsASkippedWindowThatTheManifestNamesToo) {
  Past past;
  past.ledger[0].entries[1].skipped = true;
  past.manifest.skipped = {1};
  EXPECT_THAT(past.audited().violations, IsEmpty());
  EXPECT_EQ(past.audited().skipped, 1);
}

TEST(AuditOnce, CountsMinibatchesThatWereLeftOutAsConsumed) {
  Past past;
  past.ledger[0].entries[1].left_out = {1};
  past.ledger[0].entries[1].losses[1] = 0;
  const AuditReport report = past.audited();
  EXPECT_THAT(report.violations, IsEmpty());
  EXPECT_EQ(report.minibatches, 14);
  EXPECT_EQ(report.left_out, std::vector{Position{past.ledger[0].entries[1].window * past.manifest.plan.window + 1}});
  EXPECT_THAT(audit_text(report, {}), testing::HasSubstr("14 minibatches, each exactly once; 1 minibatch left out"));
}

// Window 1 as two generations ran it: a group of the older one kept its share of each super-round.
class SharedWindow {
 public:
  SharedWindow() {
    storage::LedgerEntry whole = past.ledger[0].entries[1];
    past.ledger[0].entries.pop_back();
    for (int i = 0; i < 4; ++i) {
      storage::LedgerEntry one = whole;
      one.first = i;
      one.end = i + 1;
      one.losses = {whole.losses[static_cast<std::size_t>(i)]};
      one.plan = "1f1b D=1 P=1 W=2 M=4 preload=2 cuts=0,2";
      one.generation = {i % 2 == 0 ? 4 : 3};
      past.ledger[0].entries.push_back(one);
    }
    for (storage::LedgerEntry& entry : past.ledger[1].entries) {
      entry.generation = {4};
      entry.plan = this->entry(0).plan;
    }
  }

  storage::LedgerEntry& entry(int minibatch) { return past.ledger[0].entries[static_cast<std::size_t>(1 + minibatch)]; }

  Past past;
};

TEST(AuditOnce, AcceptsWhatAGroupKeptOfAnOlderGeneration) {
  SharedWindow shared;
  EXPECT_THAT(shared.past.audited().violations, IsEmpty());
  EXPECT_EQ(shared.past.audited().kept_minibatches, 2);
  ASSERT_EQ(shared.past.audited().stretches.size(), 2U);
  EXPECT_EQ(shared.past.audited().stretches[1].from, Position{4});
}

TEST(AuditOnce, AcceptsOfAnOlderGenerationOnlyWhatOneGroupCanHaveKept) {
  const auto refused = Contains(is_violation(Proof::kOnce, "window 1", "is of generation 3, after generation 4"));
  SharedWindow of_both;
  of_both.entry(2).generation = {3};
  EXPECT_THAT(of_both.past.audited().violations, refused);
  SharedWindow of_a_single_group;
  for (const int minibatch : {1, 3})
    of_a_single_group.entry(minibatch).plan = "1f1b D=1 P=1 W=1 M=4 preload=2 cuts=0,2";
  EXPECT_THAT(of_a_single_group.past.audited().violations, refused);
  SharedWindow in_a_later_window;
  in_a_later_window.past.ledger[1].entries[0].generation = {3};
  EXPECT_THAT(in_a_later_window.past.audited().violations,
              Contains(is_violation(Proof::kOnce, "window 2", "is of generation 3, after generation 4")));
}

struct BrokenPast {
  const char* name;
  std::function<void(Past&)> damage;
  const char* object;
  const char* what;
};

TEST(AuditOnce, NamesWhatWasLostOrDoubled) {
  constexpr const char* kFirst = "the ledger segment of positions 0 to 8";
  constexpr const char* kSecondEntry = "the ledger's entry of window 1, minibatches [0, 4)";
  const BrokenPast all[] = {
      {"an entry twice",
       [](Past& past) {
         auto& entries = past.ledger[0].entries;
         entries.insert(entries.begin(), entries[0]);
       },
       kFirst, "window 0, minibatches [0, 4): expected what follows position 4"},
      {"an entry missing", [](Past& past) { past.ledger[0].entries.pop_back(); }, kFirst,
       "nothing is recorded between position 4"},
      {"entries out of order", [](Past& past) { std::swap(past.ledger[0].entries[0], past.ledger[0].entries[1]); },
       kFirst, "window 1, minibatches [0, 4): expected what follows position 0"},
      {"a loss missing", [](Past& past) { past.ledger[0].entries[1].losses.pop_back(); }, kFirst, "has 3 losses"},
      {"a segment twice", [](Past& past) { past.ledger.insert(past.ledger.begin(), past.ledger[0]); }, kFirst,
       "repeats what ended at position 8"},
      {"a segment missing", [](Past& past) { past.ledger.erase(past.ledger.begin()); },
       "the ledger segment of positions 8 to 14", "leaves a gap behind position 0"},
      {"the end missing", [](Past& past) { past.ledger.pop_back(); }, "g3-p14-",
       "stands at position 14, but its ledger ends at 8"},
      {"another window size",
       [](Past& past) { past.ledger[0].entries[1].plan = "1f1b D=2 P=1 W=1 M=8 preload=2 cuts=0,1,2"; }, kSecondEntry,
       "was trained with a window of another size"},
      {"no plan", [](Past& past) { past.ledger[0].entries[1].plan = "by hand"; }, kSecondEntry, "is no plan"},
      {"an older generation", [](Past& past) { past.ledger[0].entries[1].generation = {2}; }, kSecondEntry,
       "is of generation 2, after generation 3"},
      {"a skip that the manifest does not know", [](Past& past) { past.ledger[0].entries[1].skipped = true; },
       "g3-p14-", "names other skipped windows"},
      {"a skip that the ledger does not know", [](Past& past) { past.manifest.skipped = {1}; }, "g3-p14-",
       "names other skipped windows"},
      {"a window that began drained", [](Past& past) { past.ledger[0].entries[1].flushed = true; }, "g3-p14-",
       "names other windows that began drained"},
      {"another loss of the unfinished window", [](Past& past) { past.ledger[1].entries[1].losses[1] += 1e-15; },
       "g3-p14-", "has other losses of its unfinished window"},
  };
  for (const BrokenPast& one : all) {
    Past past;
    one.damage(past);
    EXPECT_THAT(past.audited().violations, Contains(is_violation(Proof::kOnce, one.object, one.what))) << one.name;
  }
}

// All windows but the first began on weights that the one before made of its first half.
Past provisional_past() {
  Past past;
  for (LedgerSegment& segment : past.ledger) {
    for (storage::LedgerEntry& entry : segment.entries) {
      entry.plan = "clockwork D=2 P=1 W=1 M=4 preload=2 lag=0 provisional=2 cuts=0,1,2";
      entry.provisional = entry.window > 0;
    }
  }
  return past;
}

TEST(AuditOnce, AcceptsWindowsThatCanHaveBegunOnProvisionalWeights) {
  EXPECT_THAT(provisional_past().audited().violations, IsEmpty());
  Past drained = provisional_past();
  for (storage::LedgerEntry& entry : drained.ledger[1].entries) {
    entry.generation = entry.generation.next();
    entry.flushed = entry.window == 2;
    entry.provisional = entry.window > 2;
  }
  drained.manifest.flushed = {0, 2};
  EXPECT_THAT(drained.audited().violations, IsEmpty()) << "another generation begins without";
}

TEST(AuditOnce, NamesWindowsThatCannotHaveBegunOnProvisionalWeights) {
  const auto expect = [](const char* object, const char* what, const std::function<void(Past&)>& damage) {
    Past past = provisional_past();
    damage(past);
    EXPECT_THAT(past.audited().violations, Contains(is_violation(Proof::kOnce, object, what)));
  };
  expect("window 1,", "began on no provisional weights, but the window before it made some",
         [](Past& past) { past.ledger[0].entries[1].provisional = false; });
  expect("window 0,", "which the window before it cannot have made", [](Past& past) {
    past.ledger[0].entries[0].flushed = false;
    past.ledger[0].entries[0].provisional = true;
  });
  expect("window 1,", "which the window before it cannot have made", [](Past& past) {
    past.ledger[0].entries[0].plan = "clockwork D=2 P=1 W=1 M=4 preload=2 lag=0 provisional=1 cuts=0,1,2";
  });
  expect("window 2,", "which its plan never makes", [](Past& past) {
    for (LedgerSegment& segment : past.ledger) {
      for (auto& entry : segment.entries) entry.plan = "clockwork D=2 P=1 W=1 M=4 preload=2 lag=0 cuts=0,1,2";
    }
  });
  expect("window 1, minibatches [2, 4)", "what the range before it denies", [](Past& past) {
    auto& entries = past.ledger[0].entries;
    entries.push_back(entries[1]);
    entries[1].end = entries[2].first = 2;
    entries[2].provisional = false;
  });
}

Digest digest(int number) {
  Digest digest;
  digest.bytes.fill(static_cast<std::byte>(number));
  return digest;
}

// Four commits of two generations, each the child of the one before.
std::vector<Head> good_chain() {
  std::vector<Head> chain;
  for (int i = 1; i <= 4; ++i) {
    Manifest manifest = storage::sample_manifest({.generation = {i <= 2 ? 1 : 2}, .version = {i}});
    if (i > 1) manifest.parent = digest(i - 1);
    chain.push_back(sample_head(manifest, digest(i), i));
    chain.back().writer.author = i <= 2 ? 11 : 12;
  }
  return chain;
}

AuditReport audited(std::vector<Head> chain) {
  AuditReport report;
  audit_chain(std::move(chain), report);
  return report;
}

TEST(AuditChain, AcceptsCommitsThatFollowEachOther) {
  std::vector<Head> chain = good_chain();
  chain.push_back(chain.back());  // HEAD and its commit record are one
  const AuditReport report = audited(chain);
  EXPECT_THAT(report.violations, IsEmpty());
  EXPECT_THAT(report.fallbacks, IsEmpty());
  EXPECT_EQ(report.commits, 4);
  EXPECT_EQ(report.kept, 4);
}

TEST(AuditChain, AcceptsALeaderThatFollowsAnother) {
  std::vector<Head> chain = good_chain();
  chain[3].writer.author = 13;
  EXPECT_THAT(audited(chain).violations, IsEmpty());
}

TEST(AuditChain, AcceptsWhatRetentionRemoved) {
  std::vector<Head> chain = good_chain();
  chain.erase(chain.begin(), chain.begin() + 2);
  const AuditReport report = audited(chain);
  EXPECT_THAT(report.violations, IsEmpty());
  EXPECT_EQ(report.commits, 4);
  EXPECT_EQ(report.kept, 2);
}

TEST(AuditChain, TellsAFallbackWithoutCallingItAViolation) {
  std::vector<Head> chain = good_chain();
  chain[2].parent = digest(1);
  chain[2].checkpoint.position = chain[1].checkpoint.position;
  const AuditReport report = audited(chain);
  EXPECT_THAT(report.violations, IsEmpty());
  ASSERT_EQ(report.fallbacks.size(), 1U);
  EXPECT_THAT(report.fallbacks[0],
              AllOf(HasSubstr("(commit 3) goes on from g1-p4-"), HasSubstr("left behind: g1-p8-")));
}

struct BrokenChain {
  const char* name;
  std::function<void(std::vector<Head>&)> damage;
  const char* object;
  const char* what;
};

TEST(AuditChain, NamesTheCommitThatBreaksIt) {
  const BrokenChain all[] = {
      {"two committers that take turns",
       [](auto& chain) {
         for (const int commit : {1, 2, 3}) {
           chain[commit].checkpoint.generation = Generation{2};
           chain[commit].writer.author = commit == 2 ? 13 : 12;
         }
       },
       "(commit 4)", "is the work of a committer of generation 2 that another had followed"},
      {"a fork",
       [](auto& chain) {
         Head other = chain[2];
         other.manifest = digest(30);
         chain.push_back(other);
       },
       "(commit 3)", "two were committed where one could be"},
      {"a position that does not grow",
       [](auto& chain) { chain[3].checkpoint.position = chain[2].checkpoint.position; }, "(commit 4)",
       "is not further than"},
      {"another one before", [](auto& chain) { chain[2].previous = digest(30); }, "(commit 3)", "does not follow"},
      {"an older generation", [](auto& chain) { chain[2].checkpoint.generation = {0}; }, "(commit 3)",
       "is of an older generation than"},
      {"another job", [](auto& chain) { chain[1].job = "other"; }, "(commit 2)", "is of another job"},
      {"another lineage", [](auto& chain) { ++chain[1].lineage; }, "(commit 2)", "is of another job"},
      {"no commit before", [](auto& chain) { chain[2].previous.reset(); }, "(commit 3)",
       "does not say what was committed before it"},
      {"no parent", [](auto& chain) { chain[2].parent.reset(); }, "(commit 3)", "descends from nothing"},
      {"a parent that came later", [](auto& chain) { chain[1].parent = digest(4); }, "(commit 2)",
       "descends from a later one"},
  };
  for (const BrokenChain& one : all) {
    std::vector<Head> chain = good_chain();
    one.damage(chain);
    EXPECT_THAT(audited(chain).violations, Contains(is_violation(Proof::kChain, one.object, one.what))) << one.name;
  }
}

TEST(AuditText, KeepsForeignTextFromTheTerminal) {
  constexpr const char* kClear = "\x1b[2J";
  AuditReport report;
  report.stretches.push_back({{1}, kClear, 1, {0}, {4}});
  report.fallbacks = {kClear};
  report.orphans = {kClear};
  report.violations = {{Proof::kOnce, kClear, "is wrong"}, {Proof::kChain, "HEAD", kClear}};
  const std::string text = audit_text(report, {"checkpoints", "job", ""});
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, AllOf(HasSubstr("fallback: ?[2J\n"), HasSubstr("orphan: ?[2J was"), HasSubstr("VIOLATED: ?[2J is"),
                          HasSubstr("VIOLATED: HEAD ?[2J")));
}

}  // namespace
}  // namespace everstep::launcher
