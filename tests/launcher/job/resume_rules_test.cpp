#include "launcher/job/resume_rules.h"

#include <gmock/gmock.h>

#include "launcher/job/checkpoint_session.h"
#include "launcher/job/data_digest.h"
#include "launcher/job/stored_model.h"
#include "launcher/job/train_plan.h"
#include "storage/openssl/openssl_hashing.h"
#include "tests/launcher/commands/command_run.h"
#include "tests/launcher/job/train_config.h"
#include "tests/storage/fakes/sample_manifest.h"
#include "trainer/checkpoints/commit_assembly.h"

namespace everstep::launcher {
namespace {

using testing::HasSubstr;
using testing::Not;

storage::Settings settings(std::vector<std::string> args, const std::string& digest = "10-aa") {
  args.insert(args.begin(), {"--workers=4", "--data=x", "--checkpoint-dir=saves"});
  return stored_settings(train_config(args), digest);
}

std::string refused_resume(const std::vector<std::string>& args) {
  const Status same = check_same_settings(settings({}), settings(args));
  return same ? "" : same.error().line();
}

TEST(ResumeRules, AllowOtherPlansLengthsFilesAndLogs) {
  for (const char* arg : {"--steps=7",
                          "--lr-steps=70",
                          "--min-lr=0.0001",
                          "--schedule=1f1b",
                          "--depth=2",
                          "--pipelines=1",
                          "--width=2",
                          "--synchronous",
                          "--memory-gib=1",
                          "--bind=127.0.0.2",
                          "--timeout=5",
                          "--output=there",
                          "--trace=trace.json",
                          "--json",
                          "--checkpoint-every=5",
                          "--keep-last=5",
                          "--keep-every=5",
                          "--keep-best=5",
                          "--secret-file=secret",
                          "--drop-secret",
                          "--resume=3",
                          "--recompute",
                          "--shapes=2=2x1",
                          "--min-workers=2",
                          "--lease-ttl=5",
                          "--hang-limit=5",
                          "--join-debounce=1",
                          "--join-interval=1",
                          "--etcd-outage-limit=5",
                          "--etcd=none",
                          "--etcd-ca=ca",
                          "--etcd-cert=cert",
                          "--etcd-key=key",
                          "--advertise=a",
                          "--port-range=1-2",
                          "--wire=tcp",
                          "--tls-ca=ca",
                          "--tls-cert=cert",
                          "--tls-key=key",
                          "--metrics=:1",
                          "--notice=aws",
                          "--notice-url=u",
                          "--etcd-plain-text",
                          "--explode=100",
                          "--rebalance=on",
                          "--restart=on-failure"}) {
    EXPECT_EQ(refused_resume({arg}), "") << arg;
  }
}

TEST(ResumeRules, RefuseWhateverChangesWhatIsComputed) {
  for (const char* arg : {"--window=8",
                          "--minibatch=2",
                          "--seed=2",
                          "--model=bert-tiny",
                          "--layers=3",
                          "--hidden=32",
                          "--heads=2",
                          "--sequence=8",
                          "--vocabulary=300",
                          "--next-sentence",
                          "--dropout=0.2",
                          "--precision=bf16",
                          "--lr=0.1",
                          "--lr-decay=linear",
                          "--warmup=0.2",
                          "--weight-decay=0.2",
                          "--beta1=0.8",
                          "--beta2=0.8",
                          "--clip=2",
                          "--reproducible",
                          "--stash",
                          "--data-format=text",
                          "--validation-fraction=0.2",
                          "--eval-every=2",
                          "--emulate=1:2",
                          "--eval-minibatches=3",
                          "--job=other"}) {
    EXPECT_THAT(refused_resume({arg}), HasSubstr("the checkpoint was made with other settings: --")) << arg;
  }
}

TEST(ResumeRules, NameAllThatDiffers) {
  EXPECT_EQ(refused_resume({"--lr=0.1", "--layers=3"}),
            "the checkpoint was made with other settings: --layers (was not set, is 3), --lr (was 0.0003, is 0.1) "
            "(hint: give the old values, or start another --job)");
}

TEST(ResumeRules, CompareNumbersAsNumbers) { EXPECT_EQ(refused_resume({"--dropout=0.10", "--lr=3e-4"}), ""); }

TEST(ResumeRules, CompareWholeNumbersExactly) {
  const Status other =
      check_same_settings(settings({"--seed=9007199254740992"}), settings({"--seed=9007199254740993"}));
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().message, HasSubstr("--seed (was 9007199254740992, is 9007199254740993)"));
  EXPECT_TRUE(check_same_settings(settings({"--seed=007"}), settings({"--seed=7"})).ok());
}

TEST(ResumeRules, KeepTheEndOfTheLearningRateOfAShorterRun) {
  const storage::Settings stored = settings({"--steps=10"});
  EXPECT_EQ(setting_of(stored, "lr-steps"), "10");
  const Config longer = train_config({"--workers=4", "--data=x", "--steps=20"});
  const Config kept = with_stored_rate_steps(longer, stored);
  EXPECT_EQ(kept.setting("lr-steps").text, "10");
  EXPECT_EQ(rate_steps_event(kept, stored), std::nullopt);
  EXPECT_EQ(setting_of(stored_settings(kept, ""), "lr-steps"), "10");
  EXPECT_EQ(with_stored_rate_steps(longer, {}), longer);  // an imported model knows no end

  const Config given = train_config({"--workers=4", "--data=x", "--steps=20", "--lr-steps=30"});
  EXPECT_EQ(with_stored_rate_steps(given, stored), given);
  EXPECT_EQ(rate_steps_event(given, stored), "event=learning_rate_end_changed old=10 new=30");
}

TEST(ResumeRules, CompareDataByItsContents) {
  std::vector<std::string> moved{"--workers=4", "--data=elsewhere", "--checkpoint-dir=saves"};
  EXPECT_TRUE(check_same_settings(settings({}), stored_settings(train_config(moved), "10-aa")).ok());
  const Status other = check_same_settings(settings({}), settings({}, "10-bb"));
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().message, HasSubstr("--data (another file"));
}

TEST(ResumeRules, CompareOnlyWhatTheCheckpointKnows) {
  EXPECT_TRUE(check_same_settings({{"model", "gpt2-tiny"}}, settings({"--lr=0.1"})).ok());
  EXPECT_FALSE(check_same_settings({{"model", "bert-tiny"}}, settings({})).ok());
}

TEST(ResumeRules, ContinueALiveCheckpointUnderItsOwnPlanOnly) {
  const TrainPlan plan = *make_train_plan(train_request({"--workers=2", "--data=x", "--depth=2", "--window=4"}));
  storage::Manifest live = storage::sample_manifest({.live = true});
  EXPECT_FALSE(resume_point(live, plan.plan).continues_live);
  live.plan = trainer::stored_plan(plan.plan);
  EXPECT_TRUE(resume_point(live, plan.plan).continues_live);
  scheduler::Plan moved = plan.plan;
  ++moved.cuts[1];
  EXPECT_FALSE(resume_point(live, moved).continues_live);
  scheduler::Plan clockwork = plan.plan;
  clockwork.kind = scheduler::ScheduleKind::kClockwork;
  live.plan = trainer::stored_plan(clockwork);
  EXPECT_TRUE(resume_point(live, clockwork).continues_live);
  scheduler::Plan later = clockwork;
  ++later.lag;
  EXPECT_FALSE(resume_point(live, later).continues_live);
  ++clockwork.pipelines;
  EXPECT_FALSE(resume_point(live, clockwork).continues_live);
  storage::Manifest flush = storage::sample_manifest();
  flush.plan = trainer::stored_plan(plan.plan);
  EXPECT_FALSE(resume_point(flush, plan.plan).continues_live);
}

TEST(ResumeRules, GoOnWhereTheCheckpointWas) {
  const storage::Manifest manifest = storage::sample_manifest({.minibatches_into_window = 3});
  const TrainPlan plan = *make_train_plan(train_request({"--workers=1", "--data=x"}));
  const trainer::ResumePoint point = resume_point(manifest, plan.plan);
  EXPECT_EQ(point.position, manifest.name.position);
  EXPECT_EQ(point.version, manifest.version);
  EXPECT_EQ(point.applied, manifest.applied);
  EXPECT_EQ(point.losses.size(), 3U);
}

class DataDigest : public CommandFiles {
 protected:
  std::string digest(const std::string& path) const { return *data_digest(path, *hashing_); }
  std::unique_ptr<storage::Hashing> hashing_ = storage::make_openssl_hashing();
};

TEST_F(DataDigest, StandsForSizeAndContents) {
  const std::string first = digest(file("a.txt", std::string(3000000, 'x')));
  EXPECT_EQ(first, digest(file("b.txt", std::string(3000000, 'x'))));
  EXPECT_THAT(first, HasSubstr("3000000-"));
  EXPECT_NE(first, digest(file("c.txt", std::string(3000001, 'x'))));
  std::string changed(3000000, 'x');
  changed[2999999] = 'y';
  EXPECT_NE(first, digest(file("d.txt", changed)));
}

TEST_F(DataDigest, CoversTheLastByteOfAnySize) {
  for (const std::size_t size : {1, 1048577, 3000000, 3000001, 5000003, 70000001, 70000031}) {
    const std::string text(size, 'x');
    const std::string first = digest(file("a.txt", text));
    EXPECT_NE(first, digest(file("b.txt", text.substr(1) + "y"))) << size;
  }
}

TEST_F(DataDigest, CoversBothFilesOfAPair) {
  file("tokens.bin", "tokens");
  file("tokens.idx", "index");
  const std::string pair = digest(path("tokens"));
  EXPECT_EQ(pair, digest(path("tokens.bin")));
  file("tokens.idx", "other");
  EXPECT_NE(pair, digest(path("tokens")));
}

TEST(CheckpointBytes, CountWeightsTwiceAndMoments) {
  const auto bytes = [](std::vector<std::string> args) {
    args.insert(args.end(), {"--workers=1", "--data=x", "--checkpoint-dir=d"});
    return largest_checkpoint_bytes(train_request(args).options);
  };
  const std::uint64_t plain = bytes({});
  EXPECT_EQ(plain, bytes({"--precision=bf16"}));
  EXPECT_GT(bytes({"--checkpoint-every=2r", "--reproducible"}), plain);
}

}  // namespace
}  // namespace everstep::launcher
