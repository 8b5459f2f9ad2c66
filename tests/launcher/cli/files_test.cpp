#include "launcher/cli/files.h"

#include <csignal>
#include <filesystem>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/temporary_directory.h"

namespace everstep::launcher {
namespace {

namespace fs = std::filesystem;

class FilesTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_.file(name); }
  static std::string content(const std::string& path) { return read_file(path, 1 << 20).value(); }

  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory_.path()), fs::directory_iterator()));
  }

  TemporaryDirectory directory_;
};

std::string line_of(const Status& status) { return status.ok() ? "done" : status.error().line(); }

TEST_F(FilesTest, ComeBackAsWritten) {
  const std::string bytes("a\0b\n\xff", 5);
  ASSERT_EQ(line_of(write_file(path("x"), bytes)), "done");
  EXPECT_EQ(content(path("x")), bytes);
  ASSERT_EQ(line_of(write_file(path("empty"), "")), "done");
  EXPECT_EQ(content(path("empty")), "");
  EXPECT_EQ(entries(), 2U);
}

TEST_F(FilesTest, AreReplacedAsAWhole) {
  ASSERT_TRUE(write_file(path("x"), std::string(100'000, 'o')).ok());
  ASSERT_TRUE(write_file(path("x"), "new").ok());
  EXPECT_EQ(content(path("x")), "new");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(FilesTest, KeepTheirModeAndTheirLinks) {
  ASSERT_TRUE(write_file(path("x"), "old").ok());
  ASSERT_EQ(chmod(path("x").c_str(), 0640), 0);
  fs::create_symlink("x", path("link"));
  ASSERT_TRUE(write_file(path("link"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(content(path("x")), "new");
  EXPECT_EQ(fs::status(path("x")).permissions(), fs::perms(0640));
}

TEST_F(FilesTest, NewOnesHaveTheModeOfTheUmask) {
  const mode_t old = umask(027);
  ASSERT_TRUE(write_file(path("x"), "new").ok());
  umask(old);
  EXPECT_EQ(fs::status(path("x")).permissions(), fs::perms(0640));
}

// The limit on the size of files stands for a full disk.
TEST_F(FilesTest, SurviveAWriteThatFailsHalfWay) {
  ASSERT_TRUE(write_file(path("x"), "old").ok());
  signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const rlimit limit{1000, old_limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const Status status = write_file(path("x"), std::string(5000, 'n'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(line_of(status), "cannot write " + path("x") + ": File too large");
  EXPECT_EQ(status.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(content(path("x")), "old");
  EXPECT_EQ(entries(), 1U) << "the half-written file must be gone";
}

TEST_F(FilesTest, StepAsideForWhatAKilledRunLeft) {
  const std::string left = path(".everstep-" + std::to_string(getpid()) + "-0.tmp");
  fs::create_directory(left);
  ASSERT_EQ(line_of(write_file(path("x"), "new")), "done");
  EXPECT_EQ(content(path("x")), "new");
  EXPECT_TRUE(fs::is_directory(left));
}

TEST_F(FilesTest, CannotReplaceADirectory) {
  const Status status = write_file(directory_.path().string(), "x");
  EXPECT_EQ(line_of(status), "cannot write " + directory_.path().string() + ": Is a directory");
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(FilesTest, NeedTheirDirectory) {
  const Status status = write_file(path("none/x"), "x");
  EXPECT_EQ(line_of(status),
            "cannot write " + path("none/x") + ": No such file or directory (hint: does the directory exist?)");
  EXPECT_EQ(status.error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(write_file(path("x"), "x").ok());
  EXPECT_EQ(line_of(write_file(path("x/y"), "x")), "cannot write " + path("x/y") + ": Not a directory");
}

TEST_F(FilesTest, AreNotWrittenWithoutPermission) {
  if (geteuid() == 0) {
    // Root may write anywhere but below /proc.
    EXPECT_FALSE(write_file("/proc/everstep", "x").ok());
    return;
  }
  ASSERT_TRUE(write_file(path("x"), "old").ok());
  ASSERT_EQ(chmod(path("x").c_str(), 0444), 0);
  EXPECT_EQ(line_of(write_file(path("x"), "new")), "cannot write " + path("x") + ": Permission denied");
  ASSERT_EQ(chmod(directory_.path().c_str(), 0555), 0);
  EXPECT_EQ(line_of(write_file(path("y"), "new")), "cannot write " + path("y") + ": Permission denied");
  ASSERT_EQ(chmod(directory_.path().c_str(), 0755), 0);
}

// A pipe of our own stands for all devices: a mistake here would destroy a real one.
TEST_F(FilesTest, PipesAndDevicesAreWrittenInPlace) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  ASSERT_EQ(line_of(write_file(path("pipe"), "hello")), "done");
  std::string text(5, '\0');
  EXPECT_EQ(read(reader, text.data(), text.size()), 5);
  EXPECT_EQ(text, "hello");
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
  close(reader);
}

TEST_F(FilesTest, AreReadUpToALimit) {
  ASSERT_TRUE(write_file(path("x"), "12345").ok());
  EXPECT_EQ(read_file(path("x"), 5).value(), "12345");
  EXPECT_EQ(read_file(path("x"), 4).error(),
            invalid_argument("cannot read " + path("x") + ": it has more than 4 bytes"));
  EXPECT_EQ(read_file("/dev/zero", 100'000).error(),
            invalid_argument("cannot read /dev/zero: it has more than 100000 bytes"));
}

TEST_F(FilesTest, ThatCannotBeReadSayWhy) {
  EXPECT_EQ(read_file(path("none"), 10).error(),
            not_found("cannot read " + path("none") + ": No such file or directory"));
  EXPECT_EQ(read_file(directory_.path().string(), 10).error(),
            invalid_argument("cannot read " + directory_.path().string() + ": Is a directory"));
}

TEST_F(FilesTest, OfATemporaryDirectoryAreTheOwnersAlone) {
  const auto first = make_temporary_directory("files");
  const auto second = make_temporary_directory("files");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(*first, *second);
  EXPECT_EQ(fs::path(*first).parent_path(), fs::temp_directory_path());
  EXPECT_TRUE(fs::path(*first).filename().string().starts_with("everstep-files-"));
  EXPECT_EQ(fs::status(*first).permissions(), fs::perms::owner_all);
  for (const std::string& made : {*first, *second}) fs::remove(made);
}

}  // namespace
}  // namespace everstep::launcher
