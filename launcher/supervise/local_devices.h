#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/cli/command.h"
#include "launcher/cli/config.h"
#include "trainer/model/device_kind.h"

namespace everstep::launcher {

// What `everstep-worker devices` printed, and whether it ended well. The error is the one that it tells; of a program
// that could not even start, what it or the loader said last.
Result<std::vector<trainer::DeviceFacts>> parse_device_list(std::string_view text, bool ended_well = true);

// The devices of this host that a run may use.
struct LocalDevices {
  std::string kind = "cpu";
  std::vector<int> numbers{};  // one worker on each; of the CPU none: it takes any number of workers

  // The device of the worker that has this seat, for --device.
  std::string device_of(int seat) const;

  bool operator==(const LocalDevices&) const = default;
};

// Asks for the devices of a kind.
using ListDevices = Result<std::vector<trainer::DeviceFacts>> (*)(const std::string& kind);
Result<std::vector<trainer::DeviceFacts>> ask_worker_program(const std::string& kind);

// Puts into the configuration of `everstep train` what follows from the devices of this host: the kind for --device, a
// number for --workers=auto, and for --memory-gib, unless it is given, nine tenths of what the smallest device has.
// Refuses what this host cannot do. For the CPU nobody is asked.
Outcome find_devices(Config& config, ListDevices list, Streams& streams, LocalDevices& devices);

// For --print-config: the variables that workers set on the kind of device that --device names, a line for each. What
// "auto" stands for is asked, as by find_devices().
std::vector<std::string> explain_device(const Config& config, ListDevices list);
std::vector<std::string> explain_device(const Config& config);  // asks the worker program

// The same as find_devices() where nobody may be asked, for a check of options alone.
Outcome check_device(Config& config);

}  // namespace everstep::launcher
