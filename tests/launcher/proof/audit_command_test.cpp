#include <filesystem>
#include <functional>

#include <gmock/gmock.h>

#include "tests/launcher/checkpoint/checkpoint_commands.h"

namespace everstep::launcher {
namespace {

using storage::CatalogEntry;
using storage::Json;
using storage::StateKind;
using testing::AllOf;
using testing::HasSubstr;
using trainer::CutKind;

class AuditCommand : public CommandFiles {
 protected:
  // A job of three checkpoints in a directory of that name.
  void make_job(const std::string& name) {
    job_ = std::make_unique<SmallJob>(path(name), small_gpt());
    first_ = job_->commit({.step = 1});
    second_ = job_->commit({.step = 2, .kind = CutKind::kLive});
    head_ = job_->commit({.step = 3});
  }

  std::string path_of(const std::string& name, const std::string& document) const {
    return path(name) + "/job/" + document;
  }

  std::unique_ptr<SmallJob> job_;
  CatalogEntry first_;
  CatalogEntry second_;
  CatalogEntry head_;
};

TEST_F(AuditCommand, ProvesAWholeJob) {
  make_job("good");
  const CommandRun ended = run_command({"audit", path("good")});
  EXPECT_EQ(ended.exit_code, 0) << ended.out << ended.log;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("once: 12 minibatches, each exactly once\n"),
                               HasSubstr("chain: 3 commits, 3 kept, linked without a gap by 3 ledger segments\n"),
                               HasSubstr("restore: 3 checkpoints"), HasSubstr("audit: nothing lost, nothing doubled")));
}

TEST_F(AuditCommand, AcceptsWhatPruneLeft) {
  make_job("pruned");
  ASSERT_EQ(run_command({"checkpoint", "prune", "--checkpoint-dir=" + path("pruned"), "--keep-last=2"}).exit_code, 0);
  const CommandRun ended = run_command({"audit", path("pruned")});
  EXPECT_EQ(ended.exit_code, 0) << ended.out << ended.log;
  EXPECT_THAT(ended.out, HasSubstr("3 commits, 2 kept"));
}

TEST_F(AuditCommand, EndsWith65AndNamesWhatIsDamaged) {
  struct Case {
    const char* name;
    std::function<void()> damage;
    const char* proof;
    std::string object;
  };
  const auto ledger_of = [&](const char* name, const CatalogEntry& entry) {
    const storage::Manifest& manifest = entry.manifest;
    return path_of(name, ledger_path(manifest.lineage, manifest.name.position, manifest.ledger_writer));
  };
  const Case all[] = {
      {"head-manifest", [&] { std::ofstream(job_->path_of_manifest(head_), std::ios::app) << " "; }, "restore",
       "g1-p12-"},
      {"old-manifest", [&] { flip_a_bit(job_->path_of_manifest(first_)); }, "restore", "g1-p4-"},
      {"no-head", [&] { std::filesystem::remove(path_of("no-head", "HEAD")); }, "chain", "HEAD"},
      {"bad-head", [&] { flip_a_bit(path_of("bad-head", "HEAD")); }, "chain", "HEAD"},
      {"weights", [&] { flip_a_bit(job_->path_of_file(second_, 1, StateKind::kWeights)); }, "restore", "g1-p8-"},
      {"no-moments", [&] { std::filesystem::remove(job_->path_of_file(first_, 0, StateKind::kOptimizer)); }, "restore",
       "g1-p4-"},
      {"old-ledger", [&] { flip_a_bit(ledger_of("old-ledger", first_)); }, "once", "g1-p12-"},
      {"no-ledger", [&] { std::filesystem::remove(ledger_of("no-ledger", second_)); }, "once", "g1-p12-"},
  };
  for (const Case& one : all) {
    make_job(one.name);
    one.damage();
    const CommandRun ended = run_command({"audit", path(one.name)});
    EXPECT_EQ(ended.exit_code, 65) << one.name << "\n" << ended.out << ended.log;
    EXPECT_THAT(ended.out, testing::ContainsRegex(std::string(one.proof) + ": VIOLATED: .*" + one.object)) << one.name;
    EXPECT_THAT(ended.log, HasSubstr("everstep: audit: ")) << one.name;
    const auto json = storage::parse_json(run_command({"audit", path(one.name), "--json"}).out);
    ASSERT_TRUE(json.ok()) << one.name;
    EXPECT_EQ(*json->find("good"), Json(false)) << one.name;
  }
}

}  // namespace
}  // namespace everstep::launcher
