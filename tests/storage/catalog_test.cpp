#include "storage/catalog.h"

#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/storage/catalog_fixture.h"

namespace everstep::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Catalog, IsEmptyBeforeTheFirstCommit) {
  CrashFileSystem files;
  TestJob job(files);
  EXPECT_THAT(job.catalog().list()->entries, IsEmpty());
  EXPECT_EQ(newest_good(job.catalog()).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(*job.catalog().next_generation(), Generation{1});
  files.vanish("");
  EXPECT_THAT(job.catalog().list()->entries, IsEmpty());
}

TEST(Catalog, ListsCommittedCheckpointsNewestFirst) {
  CatalogFixture fixture;
  for (const int position : {4, 8, 12}) fixture.save(position);
  EXPECT_THAT(fixture.listed(), ElementsAre(12, 8, 4));
  const auto listing = fixture.job.catalog().list();
  EXPECT_THAT(listing->damaged, IsEmpty());
  EXPECT_EQ(listing->entries[0].head.sequence, 3);
  EXPECT_EQ(listing->entries[0].head.previous, listing->entries[1].head.manifest);
  EXPECT_EQ(listing->entries[0].head.parent, listing->entries[1].head.manifest);
  EXPECT_EQ(listing->entries[0].manifest, fixture.saved[2].manifest);
  for (const CatalogEntry& entry : listing->entries) {
    EXPECT_TRUE(fixture.job.catalog().verify(entry).ok());
    EXPECT_TRUE(fixture.job.check_content(entry).ok());
  }
}

TEST(Catalog, FindsTheNewestAtAStep) {
  CatalogFixture fixture;
  for (const int position : {4, 8, 10, 12}) fixture.save(position);
  EXPECT_EQ(fixture.newest_good(Version{2})->manifest.name.position, Position{10});
  EXPECT_EQ(fixture.newest_good(Version{1})->manifest.name.position, Position{4});
  EXPECT_EQ(fixture.newest_good(Version{7}).error(),
            not_found("there is no checkpoint at step 7", "there are those of steps 3, 2, 1"));
  for (int version = 4; version <= 9; ++version) fixture.save(version * kWindow);
  EXPECT_EQ(fixture.newest_good(Version{70}).error().hint,
            "there are those of steps 9, 8, 7, 6, 5, 4, 3, 2 and older ones");
}

TEST(Catalog, ANewerFormatIsNoDamageThatIsPassedOver) {
  CatalogFixture fixture;
  for (const int position : {4, 8, 12}) fixture.save(position);
  const CatalogEntry& newest = fixture.saved[2];
  const CatalogPorts ports = fixture.job.ports();
  std::string manifest = ports.documents.encode(newest.manifest);
  manifest.replace(manifest.find("\"format\": 1"), 11, "\"format\": 4");
  const std::string sealed = ports.seal.seal(manifest);
  fixture.files.replace(fixture.manifest(newest), std::as_bytes(std::span(sealed)));
  Head head = newest.head;
  head.manifest = sha256_of(ports.files.hashing, sealed);
  const std::string record = ports.seal.seal(ports.documents.encode(head));
  for (const std::string& path : {std::string("HEAD"), fixture.record(newest)}) {
    fixture.files.replace(path, std::as_bytes(std::span(record)));
  }
  const auto stopped = fixture.newest_good();
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(stopped.error().line(), HasSubstr("format 4, this program reads 3"));
  EXPECT_EQ(fixture.job.catalog().prune({.keep_last = 2}, {1}).error(), stopped.error());
  EXPECT_THAT(fixture.listed(), ElementsAre(8, 4)) << "others can still be looked at";
}

TEST(Catalog, AHeadOfANewerFormatIsNeitherPassedOverNorReplaced) {
  CatalogFixture fixture;
  for (const int position : {4, 8}) fixture.save(position);
  const CatalogPorts ports = fixture.job.ports();
  std::string head = ports.documents.encode(fixture.saved[1].head);
  head.replace(head.find("\"format\": 1"), 11, "\"format\": 2");
  const std::string sealed = ports.seal.seal(head);
  fixture.files.replace("HEAD", std::as_bytes(std::span(sealed)));
  EXPECT_EQ(fixture.newest_good().error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(fixture.job.catalog().next_generation().error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(fixture.job.save({.position = {12}, .nonce = 9}).error().code, ErrorCode::kInvalidArgument);
}

TEST(Catalog, FallsBackToTheNewestThatVerifiesAndNamesWhatWasLost) {
  CatalogFixture fixture;
  for (const int position : {4, 8, 12}) fixture.save(position);
  fixture.files.damage(fixture.first_file(fixture.saved[2]), 40, std::byte{1});
  EXPECT_EQ(fixture.newest_good()->manifest.name.position, Position{8});
  ASSERT_EQ(fixture.told.size(), 1U);
  EXPECT_EQ(fixture.told[0].checkpoint, fixture.directory(fixture.saved[2]));
  EXPECT_THAT(fixture.told[0].error.message, HasSubstr(fixture.first_file(fixture.saved[2])));

  for (const CatalogEntry& entry : fixture.saved) fixture.files.vanish(fixture.first_file(entry));
  EXPECT_EQ(fixture.newest_good().error().code, ErrorCode::kDataLoss);
  EXPECT_EQ(fixture.told.size(), 3U);
}

TEST(Catalog, FallsBackFromAFileThatTheDiskCannotRead) {
  CatalogFixture fixture;
  for (const int position : {4, 8}) fixture.save(position);
  fixture.files.faults.unreadable = {fixture.first_file(fixture.saved[1])};
  EXPECT_EQ(fixture.newest_good()->manifest.name.position, Position{4});
  EXPECT_EQ(fixture.told.size(), 1U);
}

TEST(Catalog, AFallbackIsSeenInTheChain) {
  CatalogFixture fixture;
  for (const int position : {4, 8}) fixture.save(position);
  fixture.files.damage(fixture.first_file(fixture.saved[1]), 40, std::byte{1});
  TestSave save;
  save.generation = {2};
  save.position = {8};
  save.parent = *fixture.newest_good();
  const CatalogEntry entry = fixture.save(save);
  EXPECT_EQ(entry.head.sequence, 3);
  EXPECT_EQ(entry.head.previous, fixture.saved[1].head.manifest);
  EXPECT_EQ(entry.head.parent, fixture.saved[0].head.manifest);
  const auto ledger = fixture.job.catalog().ledger(entry);
  ASSERT_TRUE(ledger.ok());
  ASSERT_EQ(ledger->size(), 2U);
  EXPECT_EQ((*ledger)[1].begin, Position{4});
  EXPECT_EQ((*ledger)[1].entries[0].generation, Generation{2});
}

TEST(Catalog, ListsHeadWithoutItsCommitRecordAndTheNextCommitWritesIt) {
  CatalogFixture fixture;
  for (const int position : {4, 8}) fixture.save(position);
  fixture.files.vanish(fixture.record(fixture.saved[1]));
  EXPECT_THAT(fixture.listed(), ElementsAre(8, 4));
  EXPECT_EQ(fixture.newest_good()->head, fixture.saved[1].head);
  EXPECT_THAT(fixture.told, IsEmpty());
  fixture.save(12);
  EXPECT_THAT(fixture.listed(), ElementsAre(12, 8, 4));
}

TEST(Catalog, DoesNotListWhatWasNotCommitted) {
  CatalogFixture fixture;
  for (const int position : {4, 8, 12}) fixture.save(position);
  fixture.files.vanish(fixture.record(fixture.saved[0]));
  ASSERT_TRUE(fixture.job.write({.position = {16}, .nonce = 99}).ok());
  EXPECT_THAT(fixture.listed(), ElementsAre(12, 8));
}

TEST(Catalog, LetsTheNewestCommitRecordStandInForADamagedHead) {
  CatalogFixture fixture;
  for (const int position : {4, 8}) fixture.save(position);
  fixture.files.damage("HEAD", 20, std::byte{4});
  EXPECT_EQ(fixture.newest_good()->head, fixture.saved[1].head);
  ASSERT_EQ(fixture.told.size(), 1U);
  EXPECT_EQ(fixture.told[0].checkpoint, "HEAD");
  EXPECT_EQ(fixture.job.catalog().prune({}, {1}).error().code, ErrorCode::kDataLoss);

  EXPECT_EQ(fixture.save(12).head.sequence, 3);
  EXPECT_EQ(fixture.newest_good()->head, fixture.saved[2].head);
  EXPECT_THAT(fixture.told, IsEmpty());
}

TEST(Catalog, NoticesThatHeadIsMissingOrOld) {
  CatalogFixture fixture;
  fixture.save(4);
  const std::vector<std::byte> old = fixture.files.content("HEAD");
  fixture.save(8);
  fixture.files.replace("HEAD", old);
  EXPECT_EQ(fixture.newest_good()->head, fixture.saved[1].head);
  ASSERT_EQ(fixture.told.size(), 1U);
  EXPECT_THAT(fixture.told[0].error.message, HasSubstr("out of date"));

  fixture.files.vanish("HEAD");
  EXPECT_EQ(fixture.newest_good()->head, fixture.saved[1].head);
  ASSERT_EQ(fixture.told.size(), 1U);
  EXPECT_THAT(fixture.told[0].error.message, HasSubstr("missing"));
  EXPECT_EQ(fixture.save(12).head.sequence, 3);
  EXPECT_THAT(fixture.listed(), ElementsAre(12, 8, 4));
}

TEST(Catalog, TellsOfADamagedManifestAndACommitRecordOfAnotherCheckpoint) {
  CatalogFixture fixture;
  for (const int position : {4, 8, 12}) fixture.save(position);
  fixture.files.damage(fixture.manifest(fixture.saved[2]), 3, std::byte{1});
  fixture.files.replace(fixture.record(fixture.saved[1]), fixture.files.content(fixture.record(fixture.saved[0])));
  EXPECT_EQ(fixture.newest_good()->head, fixture.saved[0].head);
  ASSERT_EQ(fixture.told.size(), 2U);
  EXPECT_EQ(fixture.told[0].checkpoint, fixture.directory(fixture.saved[1]));
  EXPECT_THAT(fixture.told[0].error.message, HasSubstr("another checkpoint"));
  EXPECT_EQ(fixture.told[1].checkpoint, fixture.directory(fixture.saved[2]));
}

TEST(Catalog, ForeignFilesAndLeftoversDoNotDisturb) {
  CatalogFixture fixture;
  for (const int position : {4, 8}) fixture.save(position);
  for (const char* path : {"HEAD.g1.00000000-00000000.tmp", "notes.txt", "11223344/notes.txt", "11223344/g1-p4"}) {
    ASSERT_TRUE(write_text(fixture.files, path, "?").ok());
  }
  ASSERT_TRUE(write_text(fixture.files, fixture.directory(fixture.saved[0]) + "/notes.txt", "mine").ok());
  ASSERT_TRUE(fixture.files.make_directories("holidays/g7-p7-00000007").ok());
  EXPECT_THAT(fixture.listed(), ElementsAre(8, 4));
  EXPECT_EQ(*fixture.job.catalog().next_generation(), Generation{2});
}

TEST(Catalog, TheNextGenerationIsAboveAllTraces) {
  CatalogFixture fixture;
  fixture.save(4);
  ASSERT_TRUE(fixture.job.write({.generation = {6}, .position = {8}}).ok());
  EXPECT_EQ(*fixture.job.catalog().next_generation(), Generation{7});
  ASSERT_TRUE(write_text(fixture.files, "HEAD.g8.00000000-00000000.tmp", "?").ok());
  EXPECT_EQ(*fixture.job.catalog().next_generation(), Generation{9});
}

TEST(Catalog, VerifyingTellsItsProgressAndCanBeCancelled) {
  CatalogFixture fixture;
  const CatalogEntry entry = fixture.save(4);
  std::vector<std::uint64_t> told;
  const auto keep_on = [&](std::uint64_t bytes) {
    told.push_back(bytes);
    return true;
  };
  ASSERT_TRUE(fixture.job.catalog().verify(entry, keep_on).ok());
  EXPECT_EQ(told.size(), entry.manifest.files.size());
  EXPECT_EQ(told.back(), entry.manifest.bytes());
  const auto stop = [](std::uint64_t) { return false; };
  EXPECT_EQ(fixture.job.catalog().verify(entry, stop).error().code, ErrorCode::kCancelled);
  const Catalog& catalog = fixture.job.catalog();
  const auto accept = [&](const CatalogEntry& candidate) { return catalog.verify(candidate, stop); };
  EXPECT_EQ(catalog.newest_accepted({}, accept, {}).error().code, ErrorCode::kCancelled);
}

TEST(Catalog, FollowsTheLedgerPastCheckpointsThatWereRemoved) {
  CatalogFixture fixture;
  for (const int position : {4, 6, 8, 12}) fixture.save(position);
  ASSERT_TRUE(fixture.job.catalog().prune({.keep_last = 2}, {1}).ok());
  const auto ledger = fixture.job.catalog().ledger(fixture.saved.back());
  ASSERT_TRUE(ledger.ok()) << ledger.error();
  ASSERT_EQ(ledger->size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ((*ledger)[i].end, fixture.saved[i].head.checkpoint.position);
  }
  const Manifest& second = fixture.saved[1].manifest;
  const std::string path = ledger_path(kLineage, second.name.position, second.ledger_writer);
  fixture.files.damage(path, 5, std::byte{1});
  const auto broken = fixture.job.catalog().ledger(fixture.saved.back());
  EXPECT_EQ(broken.error().code, ErrorCode::kDataLoss);
  EXPECT_THAT(broken.error().message, HasSubstr("ends at position 6"));
  EXPECT_TRUE(fixture.job.catalog().verify(fixture.saved.back()).ok());
}

TEST(Catalog, ACheckpointWithoutItsLedgerSegmentIsDamaged) {
  CatalogFixture fixture;
  for (const int position : {4, 8}) fixture.save(position);
  const Manifest& newest = fixture.saved[1].manifest;
  fixture.files.vanish(ledger_path(kLineage, newest.name.position, newest.ledger_writer));
  EXPECT_EQ(fixture.newest_good()->head, fixture.saved[0].head);
  EXPECT_EQ(fixture.told.size(), 1U);
}

}  // namespace
}  // namespace everstep::storage
