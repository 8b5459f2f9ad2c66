#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "storage/posix/posix_file_system.h"
#include "tests/temporary_directory.h"

// What the system refuses. Mounts and limits hold for a process, so those tests run in a child.
namespace everstep::storage {
namespace {

std::unique_ptr<FileSystem> open_at(const std::string& path) {
  auto files = open_posix_file_system(path, false);
  EVERSTEP_CHECK(files.ok(), files.error().line());
  return std::move(*files);
}

// Says on standard error what was expected and got; a child's way to fail.
bool expect(bool good, const std::string& what) {
  if (!good) std::cerr << "not as expected: " << what << "\n";
  return good;
}

bool expect_unavailable(const Status& status, const std::string& word) {
  return expect(!status && status.error().code == ErrorCode::kUnavailable &&
                    status.error().line().find(word) != std::string::npos,
                (status ? "success" : status.error().line()) + " instead of one about " + word);
}

bool succeeds_in_child(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body() ? 0 : 1);
  int state = 0;
  EXPECT_EQ(::waitpid(child, &state, 0), child);
  return WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

// Mounts of our own: root may have them, others where the system lets them be root in a namespace of users.
bool enter_mount_namespace() {
  if (::unshare(CLONE_NEWNS) == 0) return true;
  const auto user = std::to_string(::getuid());
  const auto group = std::to_string(::getgid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
  std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
  return true;
}

// A small file system, for this process alone, until it ends.
bool mount_small(const std::string& path, const std::string& options) {
  return expect(enter_mount_namespace(), "a mount namespace") &&
         expect(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "private mounts") &&
         expect(::mount("none", path.c_str(), "tmpfs", 0, options.c_str()) == 0, "a tmpfs");
}

std::vector<std::byte> kilobytes(std::size_t count) { return std::vector<std::byte>(count << 10, std::byte{7}); }

TEST(PosixFaults, AFullFileSystemIsToldAndTheFileIsOfNoUse) {
  const TemporaryDirectory scratch;
  const std::string path = scratch.path().string();
  EXPECT_TRUE(succeeds_in_child([&] {
    if (!mount_small(path, "size=256k")) return false;
    const auto files = open_at(path);
    const auto free = files->free_bytes();
    if (!expect(free && *free == 256 << 10, "256 KiB free")) return false;
    auto file = files->create("file");
    if (!expect(file && (*file)->write(kilobytes(100)).ok(), "room for 100 KiB")) return false;
    return expect_unavailable((*file)->write(kilobytes(200)), "free some space") &&
           expect_unavailable((*file)->write(kilobytes(1)), "earlier") &&
           expect_unavailable((*file)->sync(), "earlier") && expect(files->remove("file").ok(), "it can be removed") &&
           expect((file = files->create("other")).ok(), "closing frees the bytes") &&
           expect(write_text(*files, "small", "fits").ok(), "room again");
  }));
}

TEST(PosixFaults, AReadOnlyFileSystemIsTold) {
  const TemporaryDirectory scratch;
  const std::string path = scratch.path().string();
  EXPECT_TRUE(succeeds_in_child([&] {
    if (!mount_small(path, "size=256k")) return false;
    const auto files = open_at(path);
    if (!expect(write_text(*files, "file", "text").ok(), "a file before")) return false;
    if (!expect(::mount("none", path.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) == 0, "a remount"))
      return false;
    return expect_unavailable(write_text(*files, "other", "text"), "remount") &&
           expect_unavailable(files->remove("file"), "remount") &&
           expect_unavailable(files->rename("file", "other"), "remount") &&
           expect_unavailable(files->make_directories("directory"), "remount") &&
           expect(read_text(*files, "file", 10).ok(), "what is there can be read");
  }));
}

TEST(PosixFaults, ALimitOnTheSizeOfFilesIsTold) {
  const TemporaryDirectory scratch;
  EXPECT_TRUE(succeeds_in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100 << 10, 100 << 10};
    if (!expect(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "a limit")) return false;
    auto file = open_at(scratch.path().string())->create("file");
    return expect((*file)->write(kilobytes(60)).ok(), "below the limit") &&
           expect_unavailable((*file)->write(kilobytes(60)), "ulimit -f") &&
           expect_unavailable((*file)->sync(), "earlier") &&
           expect(std::filesystem::file_size(scratch.file("file")) == 100 << 10, "what did fit is there");
  }));
}

TEST(PosixFaults, ALimitOnOpenFilesIsTold) {
  const TemporaryDirectory scratch;
  EXPECT_TRUE(succeeds_in_child([&] {
    const auto files = open_at(scratch.path().string());
    const rlimit limit{4, 4};
    if (!expect(::setrlimit(RLIMIT_NOFILE, &limit) == 0, "a limit")) return false;
    return expect_unavailable(write_text(*files, "file", "text"), "ulimit -n");
  }));
}

TEST(PosixFaults, ADirectoryThatWasDeletedIsMissedByEveryCall) {
  const TemporaryDirectory scratch;
  const auto opened = open_posix_file_system(scratch.file("root"), true);
  ASSERT_TRUE(opened);
  FileSystem& files = **opened;
  ASSERT_TRUE(files.make_directories("d"));
  std::filesystem::remove_all(scratch.file("root/d"));
  EXPECT_EQ(files.create("d/file").error().code, ErrorCode::kNotFound);
  std::filesystem::remove_all(scratch.file("root"));
  EXPECT_EQ(files.create("file").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(files.list("").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(files.make_directories("d").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(files.sync_directory("").error().code, ErrorCode::kNotFound);
  EXPECT_NE(files.list("").error().line().find(scratch.file("root")), std::string::npos);
}

TEST(PosixFaults, AFileThatWasCutWhileItWasOpenIsDataLoss) {
  const TemporaryDirectory scratch;
  const auto files = open_at(scratch.path().string());
  ASSERT_TRUE(write_text(*files, "file", std::string(10'000, 'x')));
  const auto file = files->open("file");
  std::filesystem::resize_file(scratch.file("file"), 5'000);
  std::vector<std::byte> bytes(10'000);
  EXPECT_EQ((*file)->size(), 10'000U);
  EXPECT_EQ((*file)->read(0, bytes).error().code, ErrorCode::kDataLoss);
}

TEST(PosixFaults, NoDescriptorIsLeftOpen) {
  const TemporaryDirectory scratch;
  const auto files = open_at(scratch.path().string());
  const auto open_descriptors = [] {
    using Entries = std::filesystem::directory_iterator;
    return std::distance(Entries("/proc/self/fd"), Entries());
  };
  const auto before = open_descriptors();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(files->make_directories("a/b/c"));
    ASSERT_TRUE(write_text(*files, "a/b/file", "x"));
    ASSERT_TRUE(read_text(*files, "a/b/file", 10));
    ASSERT_TRUE(files->rename("a/b/file", "a/b/other"));
    ASSERT_FALSE(files->rename("a/b/file", "a/b/other"));
    ASSERT_TRUE(files->list("a/b"));
    ASSERT_FALSE(files->open("a/b/c"));
    ASSERT_FALSE(files->open("a/b/c/d/e"));
    ASSERT_TRUE(files->remove("a/b/other"));
  }
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace everstep::storage
