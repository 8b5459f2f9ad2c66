#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/storage/catalog_fixture.h"

namespace everstep::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A HEAD in memory whose answers can be arranged.
class ScriptedHeadStore final : public HeadStore {
 public:
  std::optional<Head> head;
  std::function<void()> before_advance;
  bool answer_is_lost = false;  // once: the move happens, and the caller is told that nobody knows

  Result<std::optional<Head>> read() const override { return head; }

  Status advance(const std::optional<Head>& expected, const Head& next) override {
    if (before_advance) std::exchange(before_advance, nullptr)();
    if (head != expected) return Error{ErrorCode::kStaleGeneration, "HEAD has moved", ""};
    head = next;
    if (std::exchange(answer_is_lost, false)) return Error{ErrorCode::kUnavailable, "no answer", ""};
    return {};
  }
};

TestSave child_of(const CatalogEntry& parent, std::int64_t position, std::uint32_t nonce) {
  TestSave save;
  save.position = {position};
  save.nonce = nonce;
  save.parent = parent;
  return save;
}

TEST(Commit, ReusesFilesOfTheHeadThatItReplaces) {
  CatalogFixture fixture;
  TestSave live;
  live.position = {4};
  live.live = true;
  const CatalogEntry first = fixture.save(live);
  TestSave flush = child_of(first, 4, 0);
  flush.reuse = true;
  const CatalogEntry second = fixture.save(flush);
  for (const FileRecord& file : second.manifest.files) EXPECT_EQ(file.written_by, first.head.checkpoint);
  TestSave inside = child_of(second, 6, 0);
  inside.reuse = true;
  const CatalogEntry third = fixture.save(inside);
  EXPECT_EQ(third.manifest.find(0, StateKind::kWeights)->written_by, first.head.checkpoint);
  for (const CatalogEntry& entry : fixture.saved) EXPECT_TRUE(fixture.job.check_content(entry).ok());
}

TEST(Commit, RefusesFilesOfACheckpointThatIsNotTheHeadItReplaces) {
  CatalogFixture fixture;
  const CatalogEntry first = fixture.save(4);
  fixture.save(6);
  TestSave save = child_of(first, 6, 77);
  save.reuse = true;
  const auto refused = fixture.job.save(save);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("not the HEAD that is replaced"));
  save.reuse = false;
  save.nonce = 78;
  EXPECT_TRUE(fixture.job.save(save).ok());
}

TEST(Commit, RefusesAReusedRecordThatDiffersFromHeads) {
  CatalogFixture fixture;
  const CatalogEntry first = fixture.save(4);
  TestSave save = child_of(first, 6, 77);
  save.reuse = true;
  auto request = fixture.job.write(save);
  ASSERT_TRUE(request.ok());
  request->manifest.files.front().sha256.bytes[0] ^= std::byte{1};
  const auto refused = fixture.job.catalog().commit(*request);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(fixture.listed(), ElementsAre(4));
}

TEST(Commit, RefusesALedgerThatDoesNotFollowItsParent) {
  CatalogFixture fixture;
  const CatalogEntry first = fixture.save(4);
  auto request = fixture.job.write(child_of(first, 8, 77));
  ASSERT_TRUE(request.ok());
  request->ledger.begin = {0};
  EXPECT_EQ(fixture.job.catalog().commit(*request).error().code, ErrorCode::kInvalidArgument);
  request->ledger.begin = {4};
  request->ledger.end = {7};
  EXPECT_EQ(fixture.job.catalog().commit(*request).error().code, ErrorCode::kInvalidArgument);
  request->ledger.end = {8};
  request->ledger.entries.clear();
  EXPECT_EQ(fixture.job.catalog().commit(*request).error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(fixture.listed(), ElementsAre(4));
}

TEST(Commit, RefusesWhenAFileIsGone) {
  CatalogFixture fixture;
  const CatalogEntry first = fixture.save(4);
  const auto request = fixture.job.write(child_of(first, 8, 77));
  ASSERT_TRUE(request.ok());
  fixture.files.vanish(path_of(kLineage, request->manifest.files.back()));
  const auto refused = fixture.job.catalog().commit(*request);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(fixture.newest_good()->head, first.head);
}

TEST(Commit, GoesOnWhenTheParentsManifestWasDamagedMeanwhile) {
  CatalogFixture fixture;
  fixture.save(4);
  const CatalogEntry second = fixture.save(8);
  fixture.files.vanish(fixture.directory(second));
  EXPECT_EQ(fixture.save(12).head.sequence, 3);
  EXPECT_THAT(fixture.listed(), ElementsAre(12, 4));
}

TEST(Commit, OfTwoWritersTheLaterOneIsRefused) {
  CrashFileSystem files;
  ScriptedHeadStore head;
  TestJob job(files, &head);
  TestSave save;
  save.position = {4};
  const auto first = job.save(save);
  ASSERT_TRUE(first.ok());
  const auto mine = job.write(child_of(*first, 8, 1));
  const auto theirs = job.write(child_of(*first, 8, 2));
  head.before_advance = [&] { ASSERT_TRUE(job.catalog().commit(*theirs).ok()); };
  const auto refused = job.catalog().commit(*mine);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kStaleGeneration);
  EXPECT_EQ(newest_good(job.catalog())->head.checkpoint.nonce, 2U);
}

// Two processes that both found the first checkpoint.
TEST(Commit, OfTwoRunsTheOneThatDidNotCommitLastIsRefusedAndWritesNothing) {
  CatalogFixture fixture;
  const CatalogEntry first = fixture.save(4);
  TestJob other(fixture.files);
  TestSave mine = child_of(first, 8, 21);
  mine.generation = {2};
  mine.writer = 0xaaaa;
  mine.found = first.head;
  TestSave theirs = mine;
  theirs.nonce = 22;
  theirs.writer = 0xbbbb;
  ASSERT_TRUE(fixture.job.save(mine).ok());
  const auto request = other.write(theirs);
  ASSERT_TRUE(request.ok());
  const std::vector<std::string> before = fixture.files.all_files();
  const auto head = fixture.files.content("HEAD");
  const auto refused = other.catalog().commit(*request);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kStaleGeneration);
  EXPECT_THAT(refused.error().message, HasSubstr("another run commits to this job"));
  EXPECT_EQ(fixture.files.all_files(), before);
  EXPECT_EQ(fixture.files.content("HEAD"), head);

  mine.position = {12};
  mine.nonce = 23;
  mine.parent = *newest_good(fixture.job.catalog());
  EXPECT_TRUE(fixture.job.save(mine).ok()) << "what a run committed itself is no other's";
}

TEST(Commit, ARunThatFoundADamagedHeadReplacesItUnlessAnotherDid) {
  CatalogFixture fixture;
  const CatalogEntry first = fixture.save(4);
  fixture.files.damage("HEAD", 20, std::byte{4});
  TestSave mine = child_of(first, 8, 21);
  mine.generation = {2};
  mine.found = newest_head(fixture.job.catalog());
  EXPECT_EQ(mine.found, first.head);
  ASSERT_TRUE(fixture.job.save(mine).ok());
  fixture.files.damage("HEAD", 20, std::byte{4});
  TestSave theirs = mine;
  theirs.generation = {3};
  EXPECT_EQ(fixture.job.save(theirs).error().code, ErrorCode::kStaleGeneration);
}

TEST(Commit, ReadsHeadWhenTheAnswerIsLost) {
  CrashFileSystem files;
  ScriptedHeadStore head;
  TestJob job(files, &head);
  head.answer_is_lost = true;
  TestSave save;
  save.position = {4};
  ASSERT_TRUE(job.save(save).ok());
  EXPECT_EQ(job.catalog().list()->entries.size(), 1U);
}

TEST(Commit, ALosingSiblingIsNotListed) {
  CatalogFixture fixture;
  const CatalogEntry first = fixture.save(4);
  const CatalogEntry loser = fixture.save(8);
  // Its record stays, but HEAD's chain goes past it.
  TestJob job(fixture.files);
  fixture.files.replace("HEAD", fixture.files.content(fixture.record(first)));
  const auto record = fixture.files.content(fixture.record(loser));
  fixture.files.vanish(fixture.record(loser));
  ASSERT_TRUE(job.save(child_of(first, 8, 50)).ok());
  ASSERT_TRUE(
      write_text(fixture.files, fixture.record(loser), {reinterpret_cast<const char*>(record.data()), record.size()})
          .ok());
  const auto listing = job.catalog().list();
  ASSERT_EQ(listing->entries.size(), 2U);
  EXPECT_EQ(listing->entries[0].head.checkpoint.nonce, 50U);
  EXPECT_TRUE(listing->damaged.empty());
  const auto next = job.save(child_of(listing->entries[0], 12, 51));
  ASSERT_TRUE(next.ok());
  EXPECT_THAT(fixture.listed(), ElementsAre(12, 8, 4));
  EXPECT_EQ(job.catalog().list()->entries[1].head.checkpoint.nonce, 50U);
}

}  // namespace
}  // namespace everstep::storage
