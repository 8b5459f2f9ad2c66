#include <algorithm>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/storage/catalog_fixture.h"

namespace everstep::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

bool holds(const CrashFileSystem& files, const std::string& path) {
  const auto all = files.all_files();
  return std::any_of(all.begin(), all.end(), [&](const std::string& file) { return file.starts_with(path); });
}

TEST(Prune, KeepsTheLastEveryNthTheBestAndThePinned) {
  CatalogFixture fixture;
  for (int version = 1; version <= 9; ++version) {
    TestSave save;
    save.position = {version * kWindow};
    save.validation_loss = version == 3 ? 0.1 : 1.0;
    if (!fixture.saved.empty()) save.parent = fixture.saved.back();
    fixture.save(save);
  }
  Catalog& catalog = fixture.job.catalog();
  ASSERT_TRUE(catalog.pin(fixture.saved[1]).ok());
  ASSERT_TRUE(catalog.pin(fixture.saved[1]).ok());
  const RetentionOptions options{.keep_last = 2, .keep_every = 5, .keep_best = 1};
  const auto planned = catalog.plan_prune(options, {1});
  EXPECT_EQ(fixture.listed().size(), 9U);
  const auto done = catalog.prune(options, {1});
  ASSERT_TRUE(done.ok()) << done.error();
  EXPECT_THAT(fixture.listed(), ElementsAre(36, 32, 20, 12, 8));
  EXPECT_EQ(done->removed, planned->removed);
  EXPECT_EQ(done->files, planned->files);
  EXPECT_EQ(done->bytes, planned->bytes);
  EXPECT_EQ(done->removed.size(), 4U);
  EXPECT_GT(done->bytes, 4 * fixture.saved[0].manifest.bytes());
  EXPECT_FALSE(holds(fixture.files, fixture.directory(fixture.saved[0])));

  EXPECT_TRUE(*catalog.is_pinned(fixture.saved[1]));
  ASSERT_TRUE(catalog.unpin(fixture.saved[1]).ok());
  EXPECT_FALSE(*catalog.is_pinned(fixture.saved[1]));
  ASSERT_TRUE(catalog.prune(options, {1}).ok());
  EXPECT_THAT(fixture.listed(), ElementsAre(36, 32, 20, 12));
}

TEST(Prune, KeepsFilesThatAKeptCheckpointUsesAgainAndRemovesThemWithIt) {
  CatalogFixture fixture;
  const CatalogEntry first = fixture.save(4);
  for (const int position : {5, 6, 7}) {
    TestSave save;
    save.position = {position};
    save.reuse = true;
    save.parent = fixture.saved.back();
    fixture.save(save);
  }
  Catalog& catalog = fixture.job.catalog();
  ASSERT_TRUE(catalog.prune({.keep_last = 2}, {1}).ok());
  EXPECT_THAT(fixture.listed(), ElementsAre(7, 6));
  EXPECT_FALSE(holds(fixture.files, fixture.record(first)));
  EXPECT_TRUE(holds(fixture.files, fixture.first_file(first)));
  EXPECT_TRUE(catalog.verify(fixture.saved[3]).ok());

  fixture.save(8);
  fixture.save(12);
  ASSERT_TRUE(catalog.prune({.keep_last = 2}, {1}).ok());
  EXPECT_THAT(fixture.listed(), ElementsAre(12, 8));
  EXPECT_FALSE(holds(fixture.files, fixture.directory(first)));
}

TEST(Prune, CollectsOrphansOfEarlierGenerationsOnly) {
  CatalogFixture fixture;
  fixture.save(4);
  const auto orphan = [&](std::int64_t generation) {
    TestSave save;
    save.generation = {generation};
    save.position = {8};
    save.nonce = 60;
    EVERSTEP_CHECK(fixture.job.write(save).ok(), "the orphan is written");
    return "11223344/g" + std::to_string(generation) + "-";
  };
  const std::string old = orphan(2);
  const std::string own = orphan(3);
  const std::string newer = orphan(4);
  for (const int generation : {2, 3}) {
    const std::string name = "HEAD.g" + std::to_string(generation) + ".00000001-00000001.tmp";
    ASSERT_TRUE(write_text(fixture.files, name, "?").ok());
  }
  ASSERT_TRUE(fixture.job.catalog().prune({}, {3}).ok());
  EXPECT_FALSE(holds(fixture.files, old));
  EXPECT_TRUE(holds(fixture.files, own));
  EXPECT_TRUE(holds(fixture.files, newer));
  EXPECT_FALSE(holds(fixture.files, "HEAD.g2"));
  EXPECT_TRUE(holds(fixture.files, "HEAD.g3"));
  EXPECT_THAT(fixture.listed(), ElementsAre(4));
}

TEST(Prune, LeavesForeignFilesAlone) {
  CatalogFixture fixture;
  for (const int position : {4, 8, 12}) fixture.save(position);
  const std::string note = fixture.directory(fixture.saved[0]) + "/notes.txt";
  ASSERT_TRUE(write_text(fixture.files, note, "mine").ok());
  ASSERT_TRUE(fixture.job.catalog().prune({.keep_last = 2}, {1}).ok());
  EXPECT_TRUE(holds(fixture.files, note));
  EXPECT_FALSE(holds(fixture.files, fixture.first_file(fixture.saved[0])));
}

TEST(Prune, RefusesWhileOneOfTheLastIsDamagedAndGoesOnWhenNewerOnesAreThere) {
  CatalogFixture fixture;
  for (const int position : {4, 8, 12}) fixture.save(position);
  Catalog& catalog = fixture.job.catalog();
  fixture.files.damage(fixture.manifest(fixture.saved[1]), 3, std::byte{1});
  const auto refused = catalog.prune({.keep_last = 2}, {1});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kDataLoss);
  EXPECT_THAT(refused.error().message, HasSubstr(fixture.directory(fixture.saved[1])));
  EXPECT_THAT(fixture.listed(), ElementsAre(12, 4));
  fixture.save(16);
  ASSERT_TRUE(catalog.prune({.keep_last = 2}, {1}).ok());
  EXPECT_THAT(fixture.listed(), ElementsAre(16, 12));
  EXPECT_FALSE(holds(fixture.files, fixture.directory(fixture.saved[1])));
}

TEST(Prune, PlacesACheckpointWithADamagedCommitRecordByItsName) {
  CatalogFixture fixture;
  for (const int position : {4, 8, 12, 16}) fixture.save(position);
  Catalog& catalog = fixture.job.catalog();
  fixture.files.damage(fixture.record(fixture.saved[2]), 3, std::byte{1});
  EXPECT_FALSE(catalog.prune({.keep_last = 2}, {1}).ok());
  fixture.save(20);
  ASSERT_TRUE(catalog.pin(fixture.saved[2]).ok());
  ASSERT_TRUE(catalog.prune({.keep_last = 2}, {1}).ok());
  EXPECT_THAT(fixture.listed(), ElementsAre(20, 16));
  EXPECT_TRUE(holds(fixture.files, fixture.first_file(fixture.saved[2])));
  ASSERT_TRUE(catalog.unpin(fixture.saved[2]).ok());
  ASSERT_TRUE(catalog.prune({.keep_last = 2}, {1}).ok());
  EXPECT_FALSE(holds(fixture.files, fixture.directory(fixture.saved[2])));
}

// Ten checkpoints, the newest damaged; a run falls back and saves the next.
struct Fallback {
  CatalogFixture fixture;
  CatalogEntry parent;

  Fallback() {
    for (int version = 1; version <= 10; ++version) {
      TestSave save;
      save.position = {version * kWindow};
      save.validation_loss = 1.0 / version;
      if (!fixture.saved.empty()) save.parent = fixture.saved.back();
      fixture.save(save);
    }
    fixture.files.damage(fixture.first_file(fixture.saved.back()), 40, std::byte{1});
    parent = *fixture.newest_good();
    TestSave save;
    save.generation = {2};
    save.position = {10 * kWindow};
    save.validation_loss = 1.0 / 10;
    save.parent = parent;
    fixture.save(save);
  }

  int good() {
    const auto listing = fixture.job.catalog().list();
    return static_cast<int>(
        std::count_if(listing->entries.begin(), listing->entries.end(),
                      [&](const CatalogEntry& entry) { return fixture.job.catalog().verify(entry).ok(); }));
  }
};

TEST(Prune, DoesNotCountWhatIsKnownToBeDamaged) {
  Fallback after;
  CatalogFixture& fixture = after.fixture;
  const std::vector<CheckpointName> rejected = {*fixture.told.front().name};
  const RetentionOptions options{.keep_last = 2, .keep_every = 10, .keep_best = 1};
  ASSERT_TRUE(fixture.job.catalog().prune(options, {2}, rejected).ok());
  EXPECT_THAT(fixture.listed(), ElementsAre(40, 36));
  EXPECT_EQ(after.good(), 2);
  EXPECT_FALSE(holds(fixture.files, fixture.directory(fixture.saved[9])));
}

TEST(Prune, KeepsWhatHeadDescendsFromThoughNobodySaysWhatIsDamaged) {
  Fallback after;
  CatalogFixture& fixture = after.fixture;
  ASSERT_TRUE(fixture.job.catalog().prune({.keep_last = 2}, {2}).ok());
  EXPECT_THAT(fixture.listed(), ElementsAre(40, 40, 36));
  EXPECT_EQ(after.good(), 2);
  fixture.save(44);
  ASSERT_TRUE(fixture.job.catalog().prune({.keep_last = 2}, {2}).ok());
  EXPECT_THAT(fixture.listed(), ElementsAre(44, 40));
  EXPECT_EQ(after.good(), 2);
}

TEST(Prune, WritesTheCommitRecordThatHeadLacks) {
  CatalogFixture fixture;
  const CatalogEntry entry = fixture.save(4);
  fixture.files.damage(fixture.record(entry), 3, std::byte{1});
  EXPECT_EQ(fixture.job.catalog().list()->damaged.size(), 1U);
  ASSERT_TRUE(fixture.job.catalog().prune({}, {1}).ok());
  EXPECT_THAT(fixture.job.catalog().list()->damaged, IsEmpty());
  EXPECT_TRUE(holds(fixture.files, fixture.record(entry)));
}

TEST(Prune, KeepsTwoAtLeast) {
  CatalogFixture fixture;
  fixture.save(4);
  EXPECT_EQ(fixture.job.catalog().prune({.keep_last = 1}, {1}).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace everstep::storage
