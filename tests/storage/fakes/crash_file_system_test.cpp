#include "tests/storage/fakes/crash_file_system.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "tests/storage/file_system_contract.h"

namespace everstep::storage {
namespace {

INSTANTIATE_TEST_SUITE_P(InMemory, FileSystemContract,
                         testing::Values(FileSystemMaker{"Crash", [] { return std::make_unique<CrashFileSystem>(); }}),
                         maker_name);

std::vector<std::byte> bytes_of(std::size_t size, char value) { return {size, static_cast<std::byte>(value)}; }

// A file's text after a crash; "-" if it is missing.
std::string found(const FileSystem& files, const std::string& path) {
  const auto text = read_text(files, path, 1 << 20);
  return text ? *text : "-";
}

std::set<std::string> outcomes(const CrashFileSystem& files, const std::string& path) {
  std::set<std::string> texts;
  for (const CrashPolicy& policy : crash_policies(20)) texts.insert(found(*files.after_crash(policy), path));
  return texts;
}

TEST(CrashFileSystem, SyncOfAFileDoesNotMakeItsNameDurable) {
  CrashFileSystem files;
  ASSERT_TRUE(write_text(files, "a", "text"));
  EXPECT_EQ(outcomes(files, "a"), (std::set<std::string>{"-", "text"}));
  ASSERT_TRUE(files.sync_directory(""));
  EXPECT_EQ(outcomes(files, "a"), (std::set<std::string>{"text"}));
}

TEST(CrashFileSystem, SyncOfADirectoryDoesNotMakeBytesDurable) {
  CrashFileSystem files;
  auto file = files.create("a");
  ASSERT_TRUE((*file)->write(bytes_of(3, 'x')));
  ASSERT_TRUE(files.sync_directory(""));
  EXPECT_EQ(outcomes(files, "a"), (std::set<std::string>{"", "xxx", std::string(3, '\0')}));
  ASSERT_TRUE((*file)->sync());
  EXPECT_EQ(outcomes(files, "a"), (std::set<std::string>{"xxx"}));
}

TEST(CrashFileSystem, TearsAtPagesBehindWhatWasSynced) {
  CrashFileSystem files;
  auto file = files.create("a");
  ASSERT_TRUE((*file)->write(bytes_of(5000, 'd')));
  ASSERT_TRUE((*file)->sync());
  ASSERT_TRUE((*file)->write(bytes_of(9000, 'u')));
  ASSERT_TRUE(files.sync_directory(""));
  std::set<std::size_t> sizes;
  bool torn = false;
  for (const CrashPolicy& policy : crash_policies(40)) {
    const std::string text = found(*files.after_crash(policy), "a");
    sizes.insert(text.size());
    EXPECT_EQ(text.substr(0, 5000), std::string(5000, 'd'));
    const auto zeros = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\0'));
    torn = torn || (zeros > 0 && zeros < 9000);
  }
  EXPECT_EQ(sizes, (std::set<std::size_t>{5000, 8192, 12288, 14000}));
  EXPECT_TRUE(torn);
}

TEST(CrashFileSystem, ARenameLeavesTheOldContentOrTheNew) {
  CrashFileSystem files;
  ASSERT_TRUE(write_text(files, "head", "old"));
  ASSERT_TRUE(files.sync_directory(""));
  ASSERT_TRUE(write_text(files, "temp", "new"));
  ASSERT_TRUE(files.rename("temp", "head"));
  EXPECT_EQ(outcomes(files, "head"), (std::set<std::string>{"new", "old"}));
  ASSERT_TRUE(files.sync_directory(""));
  EXPECT_EQ(outcomes(files, "head"), (std::set<std::string>{"new"}));
  EXPECT_EQ(outcomes(files, "temp"), (std::set<std::string>{"-"}));
}

TEST(CrashFileSystem, ARenameOfWhatWasNotSyncedMayLeaveAnEmptyFile) {
  CrashFileSystem files;
  ASSERT_TRUE(write_text(files, "head", "old"));
  ASSERT_TRUE(files.sync_directory(""));
  ASSERT_TRUE((*files.create("temp"))->write(bytes_of(3, 'n')));
  ASSERT_TRUE(files.rename("temp", "head"));
  EXPECT_EQ(outcomes(files, "head").count(""), 1U);
}

TEST(CrashFileSystem, KeepsAndLosesNamesIndependently) {
  CrashFileSystem files;
  for (const char* name : {"a", "b"}) ASSERT_TRUE(write_text(files, name, "x"));
  std::set<std::pair<std::string, std::string>> pairs;
  for (const CrashPolicy& policy : crash_policies(40)) {
    const auto after = files.after_crash(policy);
    pairs.emplace(found(*after, "a"), found(*after, "b"));
  }
  EXPECT_EQ(pairs.size(), 4U);
}

TEST(CrashFileSystem, ARemovedNameMayComeBackUntilItsDirectoryIsSynced) {
  CrashFileSystem files;
  ASSERT_TRUE(write_text(files, "a", "x"));
  ASSERT_TRUE(files.sync_directory(""));
  ASSERT_TRUE(files.remove("a"));
  EXPECT_EQ(outcomes(files, "a"), (std::set<std::string>{"-", "x"}));
  ASSERT_TRUE(files.sync_directory(""));
  EXPECT_EQ(outcomes(files, "a"), (std::set<std::string>{"-"}));
}

TEST(CrashFileSystem, DirectoriesThatWereMadeAreDurable) {
  CrashFileSystem files;
  ASSERT_TRUE(files.make_directories("a/b"));
  EXPECT_EQ(files.calls(), 4) << "two made, two synced";
  EXPECT_TRUE(files.after_crash({})->list("a/b"));
}

TEST(CrashFileSystem, DiesInTheCallThatWasNamed) {
  for (std::int64_t call = 1; call <= 5; ++call) {
    CrashFileSystem files;
    files.faults.crash_at_call = call;
    const bool wrote = write_text(files, "a", "text").ok();  // three calls
    const bool renamed = files.rename("a", "b").ok();
    const bool synced = files.sync_directory("").ok();
    EXPECT_EQ(wrote, call > 3);
    EXPECT_EQ(renamed, call > 4);
    EXPECT_FALSE(synced);
    EXPECT_TRUE(files.crashed());
    EXPECT_FALSE(files.open("b")) << "reads fail as well";
    EXPECT_EQ(files.calls(), call);
    EXPECT_EQ(outcomes(files, "b").count("text"), call >= 4 ? 1U : 0U);
    EXPECT_EQ(found(*files.after_crash({}), "b"), "-") << "a sync that did not return made nothing durable";
  }
}

TEST(CrashFileSystem, AFullDiskTakesWhatFits) {
  CrashFileSystem files;
  files.faults.bytes_until_full = 5;
  auto file = files.create("a");
  ASSERT_TRUE((*file)->write(bytes_of(3, 'x')));
  EXPECT_EQ(*files.free_bytes(), 2U);
  EXPECT_EQ((*file)->write(bytes_of(3, 'x')).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(found(files, "a"), "xxxxx");
}

TEST(CrashFileSystem, WhoSyncsAgainAfterAFailureIsLiedTo) {
  CrashFileSystem files;
  files.faults.failing_sync = 1;
  auto file = files.create("a");
  ASSERT_TRUE((*file)->write(bytes_of(3, 'x')));
  EXPECT_EQ((*file)->sync().error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE((*file)->sync());
  ASSERT_TRUE(files.sync_directory(""));
  EXPECT_EQ(outcomes(files, "a"), (std::set<std::string>{std::string(3, '\0')}));

  files.faults.failing_sync = files.syncs() + 1;
  ASSERT_TRUE(write_text(files, "b", "x").error().code == ErrorCode::kUnavailable);
  files.faults.failing_sync = files.syncs() + 2;
  ASSERT_TRUE(write_text(files, "c", "x"));
  EXPECT_FALSE(files.sync_directory(""));
  EXPECT_TRUE(files.sync_directory(""));
  EXPECT_EQ(outcomes(files, "c"), (std::set<std::string>{"-"}));
}

TEST(CrashFileSystem, AReadOnlyOneCanBeRead) {
  CrashFileSystem files;
  ASSERT_TRUE(write_text(files, "a", "x"));
  files.faults.read_only = true;
  EXPECT_EQ(write_text(files, "b", "x").error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(files.remove("a").error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(found(files, "a"), "x");
}

TEST(CrashFileSystem, LetsATestChangeThingsBehindTheBackOfOthers) {
  CrashFileSystem files;
  ASSERT_TRUE(files.make_directories("d"));
  ASSERT_TRUE(write_text(files, "d/a", "abc"));
  const auto before = files.copy();
  files.damage("d/a", 1, std::byte{0x20});
  EXPECT_EQ(found(files, "d/a"), "aBc");
  files.replace("d/a", bytes_of(2, 'z'));
  EXPECT_EQ(files.content("d/a"), bytes_of(2, 'z'));
  EXPECT_EQ(files.all_files(), (std::vector<std::string>{"d/a"}));
  files.faults.unreadable = {"d/a"};
  EXPECT_EQ(files.open("d/a").error().code, ErrorCode::kUnavailable);
  files.vanish("d");
  EXPECT_EQ(files.list("d").error().code, ErrorCode::kNotFound);
  files.vanish("");
  EXPECT_EQ(files.create("a").error().code, ErrorCode::kNotFound);

  EXPECT_EQ(found(*before, "d/a"), "abc");
  EXPECT_EQ(outcomes(*before, "d/a"), (std::set<std::string>{"-", "abc"})) << "a copy knows what is durable";
}

}  // namespace
}  // namespace everstep::storage
