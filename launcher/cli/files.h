#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace everstep::launcher {

// The whole content of a file, pipe or terminal. More than `max_bytes`, a directory, or what may not be read is
// kInvalidArgument; a missing file is kNotFound.
Result<std::string> read_file(const std::string& path, std::size_t max_bytes);

// Puts `content` into a file as a whole: it is written beside it under another name, synced, and then renamed. On
// failure the old file is as it was and no new one is left. The mode of an old file is kept, and a symbolic link is
// followed. What is no regular file (a device, a pipe) is written in place, since replacing it would destroy it. A
// missing directory is kNotFound; a directory in the file's place or a refused permission is kInvalidArgument; a full
// disk is kUnavailable.
Status write_file(const std::string& path, std::string_view content);

// A new directory below the system's place for temporary files, "everstep-" and the word in front of its name, into
// which no other user can put anything. It is the caller's to remove.
Result<std::string> make_temporary_directory(std::string_view word);

}  // namespace everstep::launcher
