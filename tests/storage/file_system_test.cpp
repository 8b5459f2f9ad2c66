#include "storage/file_system.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/storage/fakes/crash_file_system.h"

namespace everstep::storage {
namespace {

TEST(CheckPath, TakesWhatOurOwnNamesLookLike) {
  for (const std::string path : {"", "HEAD", "a", "a/b", "0000002a/g3-p1600-9f3a11c2/0007-weights-1f2e3d4c-9a8b7c6d.h5",
                                 "...", ".hidden", "a_b-c.d"}) {
    EXPECT_TRUE(check_path(path)) << path;
  }
  EXPECT_TRUE(check_path(std::string(255, 'x')));
}

TEST(CheckPath, RefusesWhatCouldLeaveTheRootOrConfuseATerminal) {
  for (const std::string path : {"/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b", "a b", "a\\b", "a\tb",
                                 "a~", "a:b", "ä", "a\x7f"}) {
    const auto status = check_path(path);
    ASSERT_FALSE(status) << path;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(status.error().message.find("'" + path + "'"), std::string::npos) << status.error();
  }
  EXPECT_FALSE(check_path(std::string("a\0b", 3)));
  EXPECT_FALSE(check_path(std::string(256, 'x')));
  std::string deep = "a";
  while (deep.size() <= 4000) deep += "/a";
  EXPECT_FALSE(check_path(deep));
}

TEST(JoinPath, LeavesOutWhatIsEmpty) {
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("", "b"), "b");
  EXPECT_EQ(join_path("a", ""), "a");
  EXPECT_EQ(join_path("a/b", "c/d"), "a/b/c/d");
  EXPECT_EQ(join_path("", ""), "");
}

TEST(Text, IsReadUpToALimit) {
  CrashFileSystem files;
  ASSERT_TRUE(write_text(files, "file", "five!"));
  EXPECT_EQ(*read_text(files, "file", 5), "five!");
  EXPECT_EQ(read_text(files, "file", 4).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(read_text(files, "none", 4).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(write_text(files, "empty", ""));
  EXPECT_EQ(*read_text(files, "empty", 0), "");
}

TEST(Text, IsDurableAsSoonAsItsNameIs) {
  CrashFileSystem files;
  ASSERT_TRUE(write_text(files, "file", "text"));
  ASSERT_TRUE(files.sync_directory(""));
  EXPECT_EQ(*read_text(*files.after_crash({}), "file", 10), "text");
}

TEST(Text, ThatCannotBeSyncedIsAnError) {
  CrashFileSystem files;
  files.faults.failing_sync = 1;
  EXPECT_EQ(write_text(files, "file", "text").error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(files.syncs(), 1) << "a second sync would lie";
}

}  // namespace
}  // namespace everstep::storage
