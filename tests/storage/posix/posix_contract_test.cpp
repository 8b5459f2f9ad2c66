#include <csignal>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "storage/posix/posix_file_system.h"
#include "tests/send_signal.h"
#include "tests/storage/file_system_contract.h"
#include "tests/temporary_directory.h"

namespace everstep::storage {
namespace {

// The scratch directory lives until the next test, which is long enough: nobody looks at it afterwards.
std::unique_ptr<FileSystem> in_scratch_directory() {
  static std::unique_ptr<TemporaryDirectory> scratch;
  scratch = std::make_unique<TemporaryDirectory>();
  auto files = open_posix_file_system(scratch->file("root"), true);
  EVERSTEP_CHECK(files.ok(), files.error().line());
  return std::move(*files);
}

TEST(PosixLock, NamesTheProcessThatHoldsItAndEndsWithIt) {
  const TemporaryDirectory scratch;
  const auto files = open_posix_file_system(scratch.file("root"), true);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto held = (*files)->lock("LOCK");
    const char word = held ? 'y' : 'n';
    (void)!::write(ready[1], &word, 1);
    ::pause();
  }
  char word = 0;
  ASSERT_EQ(::read(ready[0], &word, 1), 1);
  EXPECT_EQ(word, 'y');
  const auto refused = (*files)->lock("LOCK");
  EXPECT_EQ(send_signal(child, SIGKILL), 0);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(refused.error().message,
            "'" + scratch.file("root/LOCK") + "' is in use by another everstep (pid " + std::to_string(child) + ")");
  EXPECT_TRUE((*files)->lock("LOCK").ok());
}

INSTANTIATE_TEST_SUITE_P(Posix, FileSystemContract, testing::Values(FileSystemMaker{"Real", in_scratch_directory}),
                         maker_name);

}  // namespace
}  // namespace everstep::storage
