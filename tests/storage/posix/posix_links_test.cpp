#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "storage/posix/posix_file_system.h"
#include "tests/temporary_directory.h"

// What stands where a plain file or directory should: links, pipes, sockets, devices. And who may read what we make.
namespace everstep::storage {
namespace {

namespace fs = std::filesystem;

class PosixLinks : public testing::Test {
 protected:
  PosixLinks() {
    EXPECT_TRUE(write_text(open_at("outside"), "secret", "secret"));
    EXPECT_TRUE(files_.make_directories("real/deep"));
    EXPECT_TRUE(write_text(files_, "real/deep/file", "ours"));
  }

  FileSystem& open_at(const std::string& name) {
    auto opened = open_posix_file_system(scratch_.file(name), true);
    EVERSTEP_CHECK(opened.ok(), opened.error().line());
    kept_.push_back(std::move(*opened));
    return *kept_.back();
  }

  void link(const std::string& target, const std::string& path) { fs::create_symlink(target, root() / path); }
  fs::path root() const { return scratch_.path() / "root"; }

  TemporaryDirectory scratch_;
  std::vector<std::unique_ptr<FileSystem>> kept_;
  FileSystem& files_ = open_at("root");
};

TEST_F(PosixLinks, AreRefusedAtEveryPositionOfAPath) {
  link("../outside", "a");          // a directory outside
  link("real", "b");                // one inside
  link("../../outside", "real/c");  // further down
  link("../../outside/secret", "real/file");
  link("nowhere", "dangling");
  for (const std::string path : {"a/secret", "b/deep/file", "real/c/secret", "real/file", "dangling", "dangling/x"}) {
    const auto opened = files_.open(path);
    ASSERT_FALSE(opened) << path;
    EXPECT_EQ(opened.error().code, ErrorCode::kDataLoss) << opened.error();
    EXPECT_NE(opened.error().hint.find("links"), std::string::npos) << opened.error();
  }
  for (const std::string path : {"a", "b", "real/c", "a/x", "b/deep", "dangling"}) {
    EXPECT_EQ(files_.list(path).error().code, ErrorCode::kDataLoss) << path;
    EXPECT_EQ(files_.sync_directory(path).error().code, ErrorCode::kDataLoss) << path;
    EXPECT_EQ(files_.make_directories(path).error().code, ErrorCode::kDataLoss) << path;
    EXPECT_EQ(files_.make_directories(path + "/new").error().code, ErrorCode::kDataLoss) << path;
  }
  for (const std::string path : {"a/x", "b/x", "real/c/x", "dangling/x"}) {
    EXPECT_EQ(files_.create(path).error().code, ErrorCode::kDataLoss) << path;
  }
  EXPECT_FALSE(fs::exists(scratch_.path() / "outside" / "x"));
  EXPECT_FALSE(fs::exists(scratch_.path() / "outside" / "new"));
}

TEST_F(PosixLinks, AreNotWrittenThroughNorRemovedNorListed) {
  link("../outside/new", "dangling");
  EXPECT_EQ(files_.create("dangling").error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(fs::exists(scratch_.path() / "outside" / "new"));
  link("../outside/secret", "link");
  EXPECT_EQ(files_.remove("link").error().code, ErrorCode::kDataLoss);
  EXPECT_EQ(files_.rename("link", "other").error().code, ErrorCode::kDataLoss);
  link("real", "directory");
  EXPECT_EQ(files_.remove_directory("directory").error().code, ErrorCode::kDataLoss);
  EXPECT_EQ(*files_.list(""), (std::vector<DirectoryEntry>{{"real", true}}));
}

TEST_F(PosixLinks, ThatAppearLaterAreRefusedToo) {
  fs::rename(root() / "real", root() / "moved");
  link("moved", "real");
  EXPECT_EQ(files_.open("real/deep/file").error().code, ErrorCode::kDataLoss);
}

TEST_F(PosixLinks, MayLeadToTheRootItself) {
  fs::create_directory_symlink("root", scratch_.file("alias"));
  EXPECT_EQ(*read_text(open_at("alias"), "real/deep/file", 10), "ours");
}

TEST_F(PosixLinks, PipesSocketsAndDevicesAreRefusedWithoutWaiting) {
  ASSERT_EQ(::mkfifo((root() / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(files_.open("pipe").error().code, ErrorCode::kDataLoss);

  const int number = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = (root() / "socket").string();
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  path.copy(static_cast<char*>(address.sun_path), path.size());
  ASSERT_EQ(::bind(number, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ::close(number);
  EXPECT_EQ(files_.open("socket").error().code, ErrorCode::kDataLoss);

  const auto devices = open_posix_file_system("/dev", false);
  ASSERT_TRUE(devices);
  EXPECT_EQ((*devices)->open("null").error().code, ErrorCode::kDataLoss);
  EXPECT_EQ(*files_.list(""), (std::vector<DirectoryEntry>{{"real", true}}));
}

TEST_F(PosixLinks, WhatWeMakeIsForItsOwnerOnly) {
  const auto permissions = [&](const std::string& path) { return fs::status(root() / path).permissions(); };
  EXPECT_EQ(permissions("real/deep/file"), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(permissions("real"), fs::perms::owner_all);
  EXPECT_EQ(permissions("real/deep"), fs::perms::owner_all);
  EXPECT_EQ(permissions(""), fs::perms::owner_all);
}

TEST_F(PosixLinks, NeedARootThatIsADirectory) {
  EXPECT_EQ(open_posix_file_system(scratch_.file("none"), false).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(open_posix_file_system((root() / "real/deep/file").string(), true).error().code, ErrorCode::kDataLoss);
  EXPECT_EQ(open_posix_file_system("", true).error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(open_posix_file_system(scratch_.file("x/y/z/"), true));
  EXPECT_TRUE(fs::is_directory(scratch_.file("x/y/z")));
}

}  // namespace
}  // namespace everstep::storage
