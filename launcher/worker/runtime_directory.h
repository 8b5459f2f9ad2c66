#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

namespace everstep::launcher {

// Where the sockets are over which workers of this host talk: "everstep" in the user's own runtime directory
// ($XDG_RUNTIME_DIR) if there is one, else "/tmp/everstep-<uid>". All workers of one user and host have the same.
std::string runtime_directory();

// The same for a user with that number. `users_own`: that variable; nothing: it is not set.
std::string runtime_directory(const std::optional<std::string>& users_own, uid_t user);

}  // namespace everstep::launcher
