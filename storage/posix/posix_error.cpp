#include "storage/posix/posix_error.h"

#include <cerrno>
#include <string>
#include <system_error>

namespace everstep::storage {
namespace {

ErrorCode code_of(int number) {
  switch (number) {
    case ENOENT:
      return ErrorCode::kNotFound;
    case EEXIST:
    case ENOTEMPTY:
    case ENAMETOOLONG:
      return ErrorCode::kInvalidArgument;
    case ELOOP:
    case ENOTDIR:
    case EISDIR:
    case ENXIO:
    case ENODEV:
      return ErrorCode::kDataLoss;
    default:
      return ErrorCode::kUnavailable;
  }
}

const char* hint_for(int number) {
  switch (number) {
    case ENOENT:
      return "was it deleted, moved, or its file system unmounted?";
    case EEXIST:
      return "nothing is ever overwritten: choose another name";
    case ENOTEMPTY:
      return "remove what is in it first";
    case ENAMETOOLONG:
      return "choose a shorter path";
    case ELOOP:
    case ENOTDIR:
    case EISDIR:
    case ENXIO:
    case ENODEV:
      return "only plain files and directories are used here, no links and no devices: look who put this here";
    case ENOSPC:
      return "free some space there, keep fewer checkpoints, or choose a directory on another file system";
    case EDQUOT:
      return "the quota is used up: free some space, ask for more, or choose another file system";
    case EROFS:
      return "remount the file system for writing (after errors the kernel makes it read-only: see its log), or choose "
             "another directory";
    case EACCES:
    case EPERM:
      return "give the user that runs this the right to read and write there, or choose another directory";
    case EIO:
      return "the disk or the network behind it fails: see the kernel's log (dmesg), and use another file system";
    case EFBIG:
      return "raise the limit on the size of files (ulimit -f), or use a file system that allows larger ones";
    case EMFILE:
    case ENFILE:
      return "raise the limit on open files (ulimit -n)";
    case ESTALE:
      return "the file server has lost this directory: mount it again";
    default:
      return "";
  }
}

}  // namespace

Error system_error(const std::string& action, const std::string& path, int number) {
  return {code_of(number), "cannot " + action + " '" + path + "': " + std::generic_category().message(number),
          hint_for(number)};
}

}  // namespace everstep::storage
