#include "launcher/worker/runtime_directory.h"

#include <cstdlib>

#include <sys/stat.h>
#include <unistd.h>

namespace everstep::launcher {
namespace {

// Of another user, such as root's before `su`, it is of no use.
bool is_directory_of(uid_t user, const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == user;
}

}  // namespace

std::string runtime_directory() {
  const char* users_own = std::getenv("XDG_RUNTIME_DIR");  // NOLINT(concurrency-mt-unsafe)
  return runtime_directory(users_own == nullptr ? std::nullopt : std::optional<std::string>(users_own), ::geteuid());
}

std::string runtime_directory(const std::optional<std::string>& users_own, uid_t user) {
  if (users_own && is_directory_of(user, *users_own)) return *users_own + "/everstep";
  return "/tmp/everstep-" + std::to_string(user);
}

}  // namespace everstep::launcher
