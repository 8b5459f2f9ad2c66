#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "launcher/doctor/check.h"
#include "launcher/rehearse/chaos/run.h"

// From figures to checks. Answers are those of launcher/worker/doctor; kInternal: this is none.
namespace everstep::launcher::doctor {

// How far a gradient and a loss may be off, relatively.
inline constexpr double kFp32OnDevice = 1e-4;     // from the CPU's: other orders of sums
inline constexpr double kBf16OnDevice = 0.03;     // the same, and other roundings in between
inline constexpr double kFp32Differences = 0.01;  // from differences of the loss
inline constexpr double kBf16FromFp32 = 0.03;

// A link that is slower is broken. One between processes that get little of a busy machine is not.
inline constexpr double kSlowestLink = 0.005;  // GB/s

inline constexpr double kLeastSpeed = 0.5;  // of the prediction
inline constexpr double kMemoryTolerance = 0.25;
inline constexpr std::int64_t kMemoryNoise = std::int64_t{64} << 20;  // that no prediction knows of

Result<Check> judge_operators(const storage::Json& answer);

// One for each family and precision, with the figures of the device that is the farthest off.
Result<std::vector<Check>> judge_blocks(const storage::Json& answer);

// One for each kind of link, with the figures of its slowest pair. It is not checked only if no pair was measured, and
// none has failed.
Result<std::vector<Check>> judge_links(const storage::Json& answer);

// Two runs with the same options.
struct ComparedRuns {
  std::uint64_t tensors = 0;  // of the last checkpoint, in either
  std::vector<std::string> different{};
};
Check judge_bits(const ComparedRuns& runs);

Check judge_memory(std::int64_t taken, std::int64_t predicted);

// What a device takes for all blocks of the measured model, forward and backward.
struct DeviceTime {
  std::string device;
  double ms = 0;
};
Check judge_speed(double tokens_per_s, double predicted, const std::vector<DeviceTime>& devices);

// A job that lost a worker. `again` says who trains again, and after how long; nothing: nobody does.
Check judge_recovery(const chaos::RunReport& report, const std::optional<std::string>& again);

}  // namespace everstep::launcher::doctor
