#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "launcher/cli/command.h"
#include "launcher/doctor/report.h"
#include "launcher/job/device_options.h"

namespace everstep::launcher::doctor {

// What may be left out, in the order in which it is done.
const std::vector<std::string>& all_parts();

struct Wishes {
  DeviceName device;                // "auto": GPUs if there are any
  std::set<std::string> parts;      // of all_parts()
  std::filesystem::path directory;  // is there, and takes the files
};

// Examines, and tells each check as an event when it is done. A check that cannot be made is one that has failed. The
// only error is kCancelled: a signal asked us to stop. No process of it lives when it returns.
Result<Report> examine(const Wishes& wishes, Streams& streams);

}  // namespace everstep::launcher::doctor
