#include "trainer/checkpoints/checkpoint_writer.h"

#include <condition_variable>
#include <mutex>

#include <gmock/gmock.h>

#include "tests/trainer/checkpoints/checkpoint_parts.h"

namespace everstep::trainer {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// One worker's writer, and a supervisor that says what the test tells it to.
class Writer : public testing::Test {
 protected:
  // Hands the cut over, and returns what the writer has to say about it.
  SaveWord save(StagedCut cut) {
    {
      const std::scoped_lock lock(mutex_);
      told_.reset();
    }
    writer_.save(std::move(cut));
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return told_.has_value(); });
    return *told_;
  }

  storage::Shard saved(StagedCut cut) {
    const auto word = std::get<ShardSaved>(save(std::move(cut)));
    const auto sealed =
        read_text(store_.files, shard_path(kLineage, word.checkpoint, word.shard), storage::kLargestDocument);
    auto shard = store_.documents->parse_shard(*store_.seal.open(*sealed));
    EXPECT_EQ(shard->name, word.checkpoint);
    return std::move(shard).value();
  }

  Status judge(const storage::CheckpointName& name, Verdict::Kind kind) {
    writer_.take({name, kind});
    return writer_.finish();
  }
  Status commit(const storage::Shard& shard) { return judge(shard.name, Verdict::Kind::kCommitted); }

  static std::vector<std::uint32_t> nonces_of(const storage::Shard& shard) {
    std::vector<std::uint32_t> nonces;
    for (const storage::FileRecord& file : shard.files) nonces.push_back(file.written_by.nonce);
    return nonces;
  }

  MemoryStore store_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<SaveWord> told_;
  CheckpointWriter writer_{writer_setup(0), store_.ports(), [this](const SaveWord& message) {
                             const std::scoped_lock lock(mutex_);
                             told_ = message;
                             changed_.notify_all();
                           }};
};

TEST_F(Writer, IsIdleAgainOnlyAfterTheVerdict) {
  EXPECT_TRUE(writer_.idle());
  const storage::Shard shard = saved(staged_cut(0, 3, 1));
  EXPECT_FALSE(writer_.idle());
  writer_.take({{{1}, {99}, 1}, Verdict::Kind::kCommitted});  // of another checkpoint
  EXPECT_FALSE(writer_.idle());
  EXPECT_TRUE(commit(shard).ok());
  EXPECT_TRUE(writer_.idle());
}

TEST_F(Writer, NamesFilesThatAreThere) {
  const storage::Shard shard = saved(staged_cut(0, 3, 1, CutKind::kLive));
  EXPECT_EQ(shard.version.value, 3);
  ASSERT_THAT(shard.files, SizeIs(6));  // two blocks, three kinds
  for (const storage::FileRecord& file : shard.files) {
    EXPECT_TRUE(verify_block_file(store_.ports().files, kLineage, file).ok());
  }
}

TEST_F(Writer, WritesAVersionOfACommittedCheckpointOnlyOnce) {
  EXPECT_TRUE(commit(saved(staged_cut(0, 3, 1, CutKind::kLive))).ok());
  const storage::Shard again = saved(cut_inside_window(0, 3, 2));
  // By block: weights and moments of before, gradients of now.
  EXPECT_EQ(nonces_of(again), (std::vector<std::uint32_t>{1, 1, 2, 1, 1, 2}));
  EXPECT_TRUE(commit(again).ok());
  // Those are not the direct predecessor's own any more.
  EXPECT_EQ(nonces_of(saved(staged_cut(0, 3, 3))), (std::vector<std::uint32_t>{3, 3, 3, 3}));
}

TEST_F(Writer, WritesAnotherVersionAnew) {
  EXPECT_TRUE(commit(saved(staged_cut(0, 3, 1))).ok());
  EXPECT_EQ(nonces_of(saved(staged_cut(0, 4, 2))), (std::vector<std::uint32_t>{2, 2, 2, 2}));
}

TEST_F(Writer, UsesNoFileOfACheckpointThatWasNotCommitted) {
  const storage::Shard lost = saved(staged_cut(0, 3, 1));
  EXPECT_EQ(judge(lost.name, Verdict::Kind::kAbandoned).error(), last_save_failed());
  EXPECT_EQ(nonces_of(saved(staged_cut(0, 3, 2))), (std::vector<std::uint32_t>{2, 2, 2, 2}));
}

TEST_F(Writer, UsesNoFileAfterACommitThatMayHaveHappened) {
  EXPECT_TRUE(commit(saved(staged_cut(0, 3, 1))).ok());
  const storage::Shard unknown = saved(cut_inside_window(0, 3, 2));
  EXPECT_FALSE(judge(unknown.name, Verdict::Kind::kUnknown).ok());
  EXPECT_THAT(store_.files_with("-00000002/"), SizeIs(3));  // two files of gradients and the shard: they must stay
  EXPECT_EQ(nonces_of(saved(staged_cut(0, 3, 3))), (std::vector<std::uint32_t>{3, 3, 3, 3}));
}

TEST_F(Writer, KeepsTheHistoryUntilItIsCommitted) {
  const auto windows_of = [](const storage::Shard& shard) {
    std::vector<std::int64_t> windows;
    for (const storage::LedgerEntry& entry : shard.history) windows.push_back(entry.window);
    return windows;
  };
  StagedCut cut = staged_cut(0, 1, 1);
  cut.history = {finished_window(0)};
  const storage::Shard lost = saved(cut);
  EXPECT_FALSE(judge(lost.name, Verdict::Kind::kAbandoned).ok());
  cut = staged_cut(0, 2, 2);
  cut.history = {finished_window(1)};
  const storage::Shard kept = saved(cut);
  EXPECT_EQ(windows_of(kept), (std::vector<std::int64_t>{0, 1}));
  EXPECT_TRUE(commit(kept).ok());
  EXPECT_THAT(windows_of(saved(staged_cut(0, 2, 3))), IsEmpty());
}

TEST_F(Writer, LeavesNothingOfASaveThatFailed) {
  store_.files.faults.bytes_until_full = 5000;
  const auto failed = std::get<SaveFailed>(save(staged_cut(0, 3, 1)));
  EXPECT_EQ(failed.error.code, ErrorCode::kUnavailable);
  EXPECT_FALSE(judge(failed.checkpoint, Verdict::Kind::kAbandoned).ok());
  EXPECT_THAT(store_.files.all_files(), IsEmpty());
  EXPECT_FALSE(store_.files.list(directory_of(kLineage, failed.checkpoint)).ok());
  store_.files.faults.bytes_until_full.reset();
  EXPECT_TRUE(commit(saved(staged_cut(0, 4, 2))).ok());
}

TEST_F(Writer, SurvivesAnException) {
  store_.hashing->throws = true;
  const auto failed = std::get<SaveFailed>(save(staged_cut(0, 3, 1)));
  EXPECT_EQ(failed.error.message, "out of memory");
  EXPECT_FALSE(judge(failed.checkpoint, Verdict::Kind::kAbandoned).ok());
  EXPECT_THAT(store_.files.all_files(), IsEmpty());
  store_.hashing->throws = false;
  EXPECT_TRUE(commit(saved(staged_cut(0, 4, 2))).ok());
}

TEST_F(Writer, WritesNoDocumentThatIsTooLongToBeRead) {
  StagedCut cut = staged_cut(0, 1, 1);
  WindowHistory window = finished_window(0);
  window.losses.resize(kLargestHistory / 40);
  cut.history = {window};
  const auto failed = std::get<SaveFailed>(save(std::move(cut)));
  EXPECT_THAT(failed.error.message, HasSubstr("do not fit into one"));
}

TEST_F(Writer, KnowsHowLongAHistoryBecomes) {
  StagedCut cut = staged_cut(0, 1, 1);
  WindowHistory window = finished_window(0);
  window.losses.assign(20000, -1.2345678901234567e-300);
  const storage::Shard plain = saved(cut);
  EXPECT_TRUE(commit(plain).ok());
  cut = staged_cut(0, 1, 2);
  cut.history.assign(10, window);
  const storage::Shard full = saved(cut);
  EXPECT_LT(store_.documents->encode(full).size() - store_.documents->encode(plain).size(),
            largest_history_bytes(10, 200000));
}

TEST_F(Writer, RefusesACutThatCannotBeResumedFrom) {
  StagedCut cut = cut_inside_window(0, 3, 1);
  cut.usable = false;
  EXPECT_THAT(std::get<SaveFailed>(save(std::move(cut))).error.message, HasSubstr("could not be represented"));
}

TEST_F(Writer, GoesWithoutAVerdict) {
  saved(staged_cut(0, 3, 1));
  // The destructor must not wait: the test would hang.
}

}  // namespace
}  // namespace everstep::trainer
