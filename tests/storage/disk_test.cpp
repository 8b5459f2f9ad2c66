#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/storage/catalog_fixture.h"
#include "tests/storage/crash_script.h"

namespace everstep::storage {
namespace {

// A job with two checkpoints, about to save a third.
struct ThirdSave {
  CatalogFixture fixture;
  TestSave save;

  ThirdSave() {
    fixture.save(4);
    save.parent = fixture.save(8);
    save.position = {12};
    save.live = true;
    save.nonce = 30;
  }

  // HEAD is what it was, and once the fault is gone work goes on and cleans up.
  void expect_recovery() {
    fixture.files.faults = {};
    EXPECT_EQ(fixture.newest_good()->head, fixture.saved.back().head);
    EXPECT_THAT(fixture.told, testing::IsEmpty());
    save.nonce = 31;
    const auto again = fixture.job.save(save);
    ASSERT_TRUE(again.ok()) << again.error();
    const auto wrong = violation(*fixture.files.after_crash({}), {*again});
    EXPECT_FALSE(wrong) << *wrong;
  }
};

constexpr std::uint64_t kStep = kSanitized ? 97 : 11;  // 11 is less than the smallest write

TEST(Disk, FullAtEveryWriteOfASaveLeavesHeadAndRecovers) {
  std::uint64_t room = 0;
  int failures = 0;
  for (bool failed = true; failed; room += kStep) {
    ThirdSave third;
    third.fixture.files.faults.bytes_until_full = room;
    const auto saved = third.fixture.job.save(third.save);
    failed = !saved.ok();
    if (!failed) continue;
    ++failures;
    EXPECT_EQ(saved.error().code, ErrorCode::kUnavailable);
    third.expect_recovery();
    ASSERT_FALSE(testing::Test::HasFailure()) << "with room for " << room << " bytes";
  }
  EXPECT_GT(failures, kSanitized ? 20 : 200);
}

TEST(Disk, AnErrorAtEverySyncLosesNoAcknowledgedCheckpoint) {
  CrashFileSystem whole;
  const std::size_t all = run_script(whole).size();
  for (std::int64_t sync = 1; sync <= whole.syncs(); ++sync) {
    CrashFileSystem files;
    files.faults.failing_sync = sync;
    const Acknowledged acknowledged = run_script(files);
    EXPECT_GE(acknowledged.size() + 1, all) << "one save at most is lost";
    const auto wrong = violation(*files.after_crash({}), acknowledged);
    ASSERT_FALSE(wrong) << "sync " << sync << " failed: " << *wrong;
  }
}

TEST(Disk, ReadOnlyLeavesHeadAndRecovers) {
  ThirdSave third;
  third.fixture.files.faults.read_only = true;
  EXPECT_EQ(third.fixture.job.save(third.save).error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(third.fixture.job.catalog().prune({}, {1}).ok());
  EXPECT_EQ(third.fixture.newest_good()->head, third.fixture.saved.back().head);
  third.expect_recovery();
}

TEST(Disk, ADirectoryDeletedBeforeTheCommitIsNoticed) {
  ThirdSave third;
  const auto request = third.fixture.job.write(third.save);
  third.fixture.files.vanish(directory_of(kLineage, request->manifest.name));
  const auto refused = third.fixture.job.catalog().commit(*request);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().hint, testing::HasSubstr("next save"));
  third.expect_recovery();
}

TEST(Disk, AJobDirectoryDeletedUnderItIsBegunAnew) {
  ThirdSave third;
  third.fixture.files.vanish("11223344");
  third.fixture.files.vanish("HEAD");
  const auto saved = third.fixture.job.save(third.save);
  ASSERT_TRUE(saved.ok()) << saved.error();
  EXPECT_EQ(third.fixture.newest_good()->head, saved->head);
  EXPECT_TRUE(third.fixture.job.check_content(*saved).ok());
}

}  // namespace
}  // namespace everstep::storage
