#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launcher/cli/child_process.h"
#include "launcher/doctor/check.h"
#include "launcher/job/device_options.h"

namespace everstep::launcher::doctor {

// What is examined, and where files go.
struct Place {
  DeviceName device;  // of a kind that there is: all of it, or one
  int devices = 0;    // that may be used; of the host none
  std::filesystem::path directory;

  std::string device_text() const;
  // Who has a device each; on the host there may be any number.
  int workers(int most_on_host) const;
};

// Waits for the end of a program of ours. kCancelled: a signal asked us to stop. kDeadlineExceeded: it does not end.
// After both neither it lives nor what it started, if this process has adopted orphans.
Status wait_for_end(ChildProcess& program, std::chrono::milliseconds limit);

// The ends of all logs there, or of one log.
std::vector<LogTail> log_tails(const std::filesystem::path& place);

// Text of many words, with which a token file is made.
Status write_corpus(const std::filesystem::path& directory);

}  // namespace everstep::launcher::doctor
