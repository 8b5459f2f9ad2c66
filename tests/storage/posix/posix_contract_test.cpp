#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "storage/posix/posix_file_system.h"
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

INSTANTIATE_TEST_SUITE_P(Posix, FileSystemContract, testing::Values(FileSystemMaker{"Real", in_scratch_directory}),
                         maker_name);

}  // namespace
}  // namespace everstep::storage
