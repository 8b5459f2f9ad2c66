#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "launcher/cli/config.h"
#include "storage/manifest.h"

namespace everstep::launcher {

// A place among the files of a job, as a person names it.
struct StoredPlace {
  std::string directory;  // what --checkpoint-dir is
  std::string job{};
  std::optional<std::string> checkpoint{};  // a name as `checkpoint ls` prints it

  bool operator==(const StoredPlace&) const = default;
};

// `path` is a directory of checkpoints, of a job in it, or of one of the job's checkpoints. `job`, if not empty, is the
// one that is meant where there are several. kInvalidArgument says what is there instead.
Result<StoredPlace> find_stored_place(const std::string& path, const std::string& job);

// What `everstep resume` takes besides --from and --step: the options of `everstep train`. What is not given is as the
// checkpoint has it, so none has a default.
std::vector<OptionSpec> resume_options();

// The configuration of `everstep train` that goes on from there: what `given` sets, else what the checkpoint was made
// with, as far as that says nothing about a host. The rules of --resume judge it like any other.
Config resume_config(const Config& given, const storage::Settings& stored, const StoredPlace& place,
                     const std::string& resume);

}  // namespace everstep::launcher
