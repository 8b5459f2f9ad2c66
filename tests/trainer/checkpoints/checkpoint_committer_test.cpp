#include "trainer/checkpoints/checkpoint_committer.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <poll.h>

#include "tests/trainer/checkpoints/checkpoint_parts.h"

namespace everstep::trainer {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Kind = Verdict::Kind;

// Two workers' writers and the committer between them, without processes.
class Committer : public testing::Test {
 protected:
  Committer() {
    for (int rank = 0; rank < 2; ++rank) {
      writers_.push_back(
          std::make_unique<CheckpointWriter>(writer_setup(rank), store_.ports(), [this, rank](const SaveWord& word) {
            if (told_ + 1 == throw_at_) store_.hashing->throws = true;
            if (const auto* saved = std::get_if<ShardSaved>(&word)) committer_->take(rank, *saved);
            if (const auto* failed = std::get_if<SaveFailed>(&word)) committer_->take(rank, *failed);
            ++told_;
          }));
    }
    start({});
  }

  void start(std::optional<storage::CatalogEntry> parent, const std::vector<Position>& left_out = {}) {
    storage::RetentionOptions retention;
    retention.keep_last = 2;
    RunFacts facts = run_facts();
    facts.left_out = left_out;
    committer_ = std::make_unique<CheckpointCommitter>(facts, 2, retention, store_.ports(), std::move(parent));
  }

  // Both workers save, and are told the verdict, which is returned.
  Kind save(StagedCut first, StagedCut second) {
    writers_[0]->save(std::move(first));
    writers_[1]->save(std::move(second));
    return pass_verdict_on();
  }
  Kind save_at(std::int64_t version, std::uint32_t nonce, std::vector<WindowHistory> history) {
    StagedCut first = staged_cut(0, version, nonce);
    first.history = std::move(history);
    return save(std::move(first), staged_cut(1, version, nonce));
  }

  // The last one, since a worker that comes late is answered again.
  Kind pass_verdict_on() {
    Kind last{};
    const auto is_idle = [](const auto& writer) { return writer->idle(); };
    while (!std::all_of(writers_.begin(), writers_.end(), is_idle)) {
      pollfd entry{committer_->fd(), POLLIN, 0};
      ::poll(&entry, 1, 1);
      for (const CheckpointCommitter::News& news : committer_->take_news()) {
        if (!news.event.empty()) events_.push_back(news.event);
        if (!news.verdict) continue;
        last = news.verdict->kind;
        for (const auto& writer : writers_) writer->take(*news.verdict);
      }
    }
    committer_->finish();
    return last;
  }

  storage::CatalogEntry newest() { return store_.catalog().list()->entries.front(); }

  MemoryStore store_;
  std::atomic<int> told_{0};      // words of writers that the committer has
  std::atomic<int> throw_at_{0};  // hashing throws from this word on
  std::unique_ptr<CheckpointCommitter> committer_;
  std::vector<std::unique_ptr<CheckpointWriter>> writers_;
  std::vector<std::string> events_;
};

TEST_F(Committer, CommitsOnceAllShardsAreThere) {
  ASSERT_EQ(save_at(1, 1, {finished_window(0)}), Kind::kCommitted);
  const storage::Manifest manifest = newest().manifest;
  EXPECT_EQ(manifest.version.value, 1);
  EXPECT_EQ(manifest.name.position.value, kWindow);
  EXPECT_THAT(manifest.files, SizeIs(8));  // four blocks, two kinds
  EXPECT_EQ(manifest.loss, 0.25);
  EXPECT_EQ(manifest.flushed, std::vector<std::int64_t>{0});
  EXPECT_TRUE(store_.catalog().verify(newest()).ok());
  EXPECT_THAT(store_.files_with("shard-"), IsEmpty());
  EXPECT_THAT(events_.back(), HasSubstr("event=checkpoint_saved step=1 position=4 kind=flush bytes="));
  EXPECT_EQ(committer_->counts(), (CheckpointCounts{1, 0, 0, 1}));
}

TEST_F(Committer, WaitsForTheLastShard) {
  writers_[0]->save(staged_cut(0, 1, 1));
  while (told_ == 0) std::this_thread::yield();
  committer_->finish();
  EXPECT_THAT(committer_->take_news(), IsEmpty());
  EXPECT_THAT(store_.files_with("manifest-"), IsEmpty());
}

TEST_F(Committer, AbandonsWhatAWorkerCouldNotWriteAndTriesTheNext) {
  ASSERT_EQ(save_at(1, 1, {finished_window(0)}), Kind::kCommitted);
  StagedCut unusable = staged_cut(1, 2, 2);
  unusable.usable = false;
  StagedCut usable = staged_cut(0, 2, 2);
  usable.history = {finished_window(1)};
  EXPECT_EQ(save(std::move(usable), std::move(unusable)), Kind::kAbandoned);
  EXPECT_THAT(events_.back(), HasSubstr("event=checkpoint_failed step=2 position=8 reason=\"worker 1: "));
  EXPECT_FALSE(committer_->last().ok());
  EXPECT_EQ(newest().manifest.version.value, 1);
  EXPECT_THAT(store_.files_with("-00000002/"), IsEmpty());

  EXPECT_EQ(save_at(3, 3, {finished_window(2)}), Kind::kCommitted);
  EXPECT_TRUE(committer_->last().ok());
  EXPECT_EQ(committer_->counts(), (CheckpointCounts{2, 0, 1, 3}));
  // What happened before the failed save is not forgotten.
  const auto ledger = store_.catalog().ledger(newest());
  ASSERT_TRUE(ledger.ok());
  EXPECT_EQ(ledger->back().begin.value, kWindow);
  EXPECT_EQ(ledger->back().end.value, 3 * kWindow);
}

TEST_F(Committer, IsNotConfusedByLateWordOfAnOlderSave) {
  ASSERT_EQ(save_at(1, 1, {finished_window(0)}), Kind::kCommitted);
  const storage::CheckpointName old = newest().manifest.name;
  ASSERT_EQ(save_at(2, 2, {finished_window(1)}), Kind::kCommitted);
  StagedCut first = staged_cut(0, 3, 3);
  first.history = {finished_window(2)};
  writers_[0]->save(std::move(first));
  while (told_ < 5) std::this_thread::yield();  // two words for each save before, and this one
  committer_->take(1, ShardSaved{old, {1, 2}, 0});
  committer_->take(1, SaveFailed{old, {ErrorCode::kUnavailable, "late", ""}});
  writers_[1]->save(staged_cut(1, 3, 3));
  EXPECT_EQ(pass_verdict_on(), Kind::kCommitted);
}

TEST_F(Committer, AnswersAWorkerThatComesToTheCutAfterTheVerdict) {
  StagedCut unusable = staged_cut(0, 1, 1);
  unusable.usable = false;
  writers_[0]->save(std::move(unusable));
  EXPECT_EQ(pass_verdict_on(), Kind::kAbandoned);
  writers_[1]->save(staged_cut(1, 1, 1));
  EXPECT_EQ(pass_verdict_on(), Kind::kAbandoned);  // or the writer would wait for ever
  EXPECT_TRUE(writers_[1]->idle());
  EXPECT_THAT(store_.files.all_files(), IsEmpty());
  EXPECT_EQ(committer_->counts().failed, 1);
}

TEST_F(Committer, CountsAFailureOfSeveralWorkersOnce) {
  for (int rank = 0; rank < 2; ++rank) {
    StagedCut unusable = staged_cut(rank, 1, 1);
    unusable.usable = false;
    writers_[rank]->save(std::move(unusable));
    EXPECT_EQ(pass_verdict_on(), Kind::kAbandoned);
  }
  EXPECT_EQ(committer_->counts().failed, 1);
}

TEST_F(Committer, RefusesAnUnfinishedWindowWithoutAllItsLosses) {
  StagedCut silent = cut_inside_window(1, 0, 1);
  silent.losses.clear();
  EXPECT_EQ(save(cut_inside_window(0, 0, 1), std::move(silent)), Kind::kAbandoned);
  EXPECT_THAT(events_.back(), HasSubstr("losses are known of 1 minibatches, not 2"));
}

TEST_F(Committer, CutsTheLedgerWhereTheParentWasInsideAWindow) {
  StagedCut first = cut_inside_window(0, 1, 1);
  first.history = {finished_window(0)};
  ASSERT_EQ(save(std::move(first), cut_inside_window(1, 1, 1)), Kind::kCommitted);
  EXPECT_EQ(newest().manifest.window_losses, (std::vector<storage::StoredLoss>{{0, 0.5}, {1, 0.5}}));
  EXPECT_THAT(events_.back(), HasSubstr("kind=in-window"));
  ASSERT_EQ(save_at(2, 2, {finished_window(1)}), Kind::kCommitted);
  const auto ledger = store_.catalog().ledger(newest());
  ASSERT_TRUE(ledger.ok()) << ledger.error();
  ASSERT_THAT(ledger->back().entries, SizeIs(1));
  EXPECT_EQ(ledger->back().entries[0].first, 2);
  EXPECT_EQ(ledger->back().entries[0].losses, (std::vector<double>{1.25, 1.25}));
}

TEST_F(Committer, TellsWhatWasLeftOutOnBothSidesOfACutInsideAWindow) {
  start({}, {{kWindow + 1}, {kWindow + 3}});
  StagedCut first = cut_inside_window(0, 1, 1);
  first.history = {finished_window(0)};
  StagedCut second = cut_inside_window(1, 1, 1);
  second.losses = {{1, 0}};
  ASSERT_EQ(save(std::move(first), std::move(second)), Kind::kCommitted);
  EXPECT_EQ(store_.catalog().ledger(newest())->back().entries.back().left_out, std::vector{1});
  WindowHistory whole = finished_window(1);
  whole.left_out = {1, 3};
  whole.losses[1] = whole.losses[3] = 0;
  ASSERT_EQ(save_at(2, 2, {whole}), Kind::kCommitted);
  EXPECT_EQ(store_.catalog().ledger(newest())->back().entries.back().left_out, std::vector{3});
}

TEST_F(Committer, KeepsAsManyAsRetentionSays) {
  for (std::uint32_t version = 1; version <= 4; ++version) {
    ASSERT_EQ(save_at(version, version, {finished_window(version - 1)}), Kind::kCommitted);
  }
  const auto listing = store_.catalog().list();
  ASSERT_THAT(listing->entries, SizeIs(2));
  EXPECT_EQ(listing->entries[0].manifest.version.value, 4);
  EXPECT_EQ(listing->entries[1].manifest.version.value, 3);
  EXPECT_THAT(store_.files_with("weights"), SizeIs(8));
}

TEST_F(Committer, NamesFilesOfTheCheckpointBeforeInsteadOfNewOnes) {
  ASSERT_EQ(save_at(1, 1, {finished_window(0)}), Kind::kCommitted);
  ASSERT_EQ(save(cut_inside_window(0, 1, 2), cut_inside_window(1, 1, 2)), Kind::kCommitted);
  EXPECT_THAT(store_.files_with("-00000002/"), SizeIs(4 + 2));  // gradients; manifest and commit record
  EXPECT_TRUE(store_.catalog().verify(newest()).ok());
}

TEST_F(Committer, TellsWhyACommitFailedAndLeavesHeadAlone) {
  ASSERT_EQ(save_at(1, 1, {finished_window(0)}), Kind::kCommitted);
  StagedCut gap = staged_cut(0, 3, 2);
  gap.history = {finished_window(2)};  // where is window 1?
  EXPECT_EQ(save(std::move(gap), staged_cut(1, 3, 2)), Kind::kAbandoned);
  EXPECT_THAT(events_.back(), HasSubstr("do not fit together"));
  EXPECT_EQ(newest().manifest.version.value, 1);
}

TEST_F(Committer, SurvivesAnException) {
  writers_[0]->save(staged_cut(0, 1, 1));
  while (told_ == 0) std::this_thread::yield();
  throw_at_ = 2;
  writers_[1]->save(staged_cut(1, 1, 1));
  EXPECT_EQ(pass_verdict_on(), Kind::kAbandoned);
  EXPECT_THAT(events_.back(), HasSubstr("event=checkpoint_failed step=1 position=4 reason=\"out of memory\""));
  EXPECT_EQ(committer_->counts().failed, 1);
  throw_at_ = 0;
  store_.hashing->throws = false;
  EXPECT_EQ(save_at(2, 2, {finished_window(0), finished_window(1)}), Kind::kCommitted);
}

TEST_F(Committer, SavesNoMoreOnceAnotherRunCommits) {
  ASSERT_EQ(save_at(1, 1, {finished_window(0)}), Kind::kCommitted);
  start(newest());  // a run that did not find this checkpoint when it began
  const std::vector<std::string> files = store_.files.all_files();
  for (const std::uint32_t version : {2, 3}) {
    EXPECT_EQ(save_at(version, version, {finished_window(version - 1)}), Kind::kAbandoned);
    EXPECT_THAT(events_.back(), HasSubstr("reason=\"another run commits to this job"));
  }
  EXPECT_EQ(store_.files.all_files(), files);
  EXPECT_EQ(committer_->last().error().code, ErrorCode::kStaleGeneration);
}

TEST_F(Committer, RefusesAShardThatWasChanged) {
  writers_[0]->save(staged_cut(0, 1, 1));
  const auto is_written = [this] {
    const std::vector<std::string> shards = store_.files_with("shard-");
    return !shards.empty() && !store_.files.content(shards.front()).empty();
  };
  while (!is_written()) std::this_thread::yield();
  store_.files.damage(store_.files_with("shard-").front(), 20, std::byte{1});
  writers_[1]->save(staged_cut(1, 1, 1));
  EXPECT_EQ(pass_verdict_on(), Kind::kAbandoned);
  EXPECT_THAT(store_.files_with("manifest-"), IsEmpty());
}

TEST_F(Committer, CountsWhatWasSkipped) {
  committer_->take(0, SaveSkipped{{8}});
  committer_->finish();
  EXPECT_THAT(committer_->take_news().front().event, HasSubstr("event=checkpoint_skipped step=2 position=8"));
  EXPECT_EQ(committer_->counts().skipped, 1);
}

TEST_F(Committer, KeepsWhatWorkersSayAboutThemselves) {
  committer_->take(1, Libraries{{{"kernels", "AVX2"}}});
  committer_->take(0, Libraries{{{"kernels", "AVX2"}}});
  ASSERT_EQ(save_at(1, 1, {finished_window(0)}), Kind::kCommitted);
  EXPECT_EQ(newest().manifest.provenance, (storage::Settings{{"everstep", "test"}, {"kernels", "AVX2"}}));
  EXPECT_EQ(newest().manifest.validation_loss, std::nullopt);
}

TEST_F(Committer, KeepsTheValidationLossThatWasMeasuredOnThisState) {
  StagedCut first = staged_cut(0, 1, 1);
  StagedCut second = staged_cut(1, 1, 1);
  first.history = {finished_window(0)};
  first.validation_loss = second.validation_loss = 1.5;
  ASSERT_EQ(save(std::move(first), std::move(second)), Kind::kCommitted);
  EXPECT_EQ(newest().manifest.validation_loss, 1.5);
}

}  // namespace
}  // namespace everstep::trainer
