#include "storage/posix/posix_error.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace everstep::storage {
namespace {

TEST(SystemError, SaysWhatWhereWhyAndWhatToDo) {
  EXPECT_EQ(system_error("write", "/x/y", ENOSPC).line(),
            "cannot write '/x/y': No space left on device (hint: free some space there, keep fewer checkpoints, or "
            "choose a directory on another file system)");
}

TEST(SystemError, HasAHintForWhateverAUserCanMend) {
  for (const int number : {ENOSPC, EDQUOT, EROFS, EACCES, EPERM, EIO, EFBIG, EMFILE, ENFILE, ESTALE}) {
    const Error error = system_error("write", "p", number);
    EXPECT_EQ(error.code, ErrorCode::kUnavailable) << number;
    EXPECT_FALSE(error.hint.empty()) << number;
  }
}

TEST(SystemError, TellsMissingFromTakenFromForeign) {
  EXPECT_EQ(system_error("open", "p", ENOENT).code, ErrorCode::kNotFound);
  EXPECT_EQ(system_error("create", "p", EEXIST).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(system_error("remove", "p", ENOTEMPTY).code, ErrorCode::kInvalidArgument);
  for (const int number : {ELOOP, ENOTDIR, EISDIR, ENXIO, ENODEV}) {
    EXPECT_EQ(system_error("open", "p", number).code, ErrorCode::kDataLoss) << number;
  }
}

}  // namespace
}  // namespace everstep::storage
