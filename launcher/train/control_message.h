#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "trainer/train_loop.h"

namespace everstep::launcher {

// What a worker process and the supervisor that started it tell each other: one JSON object per message.

// From a worker when it can be reached by its peers.
struct Hello {
  std::string setup;    // what it is about to do (describe_setup): all must say the same
  std::string address;  // of its transport, any bytes

  bool operator==(const Hello&) const = default;
};

// From every worker from its start on, whatever it is doing.
inline constexpr std::chrono::milliseconds kAliveEvery{500};
struct Alive {
  bool operator==(const Alive&) const = default;
};

// From worker 0 when the loss on the validation split after that update is known.
struct Validation {
  std::int64_t step = 0;
  double loss = 0;

  bool operator==(const Validation&) const = default;
};

// From a worker that reached the end.
struct Finished {
  std::int64_t steps = 0;
  std::int64_t skipped = 0;
  std::int64_t peak_bytes = 0;  // of memory, above what it had before the training

  bool operator==(const Finished&) const = default;
};

// A StepReport comes from worker 0 alone, since all have the same. An Error is a worker's last word.
using FromWorker = std::variant<Hello, Alive, trainer::StepReport, Validation, Finished, Error>;

// To every worker, once all said hello: the addresses by rank.
struct Start {
  std::vector<std::string> addresses;

  bool operator==(const Start&) const = default;
};

// To every worker: end at the next window's end.
struct Stop {
  bool operator==(const Stop&) const = default;
};

using ToWorker = std::variant<Start, Stop>;

std::string encode(const FromWorker& message);
std::string encode(const ToWorker& message);

// kInternal for anything that encode did not make. Numbers that are not finite come back as NaN.
Result<FromWorker> decode_from_worker(std::string_view text);
Result<ToWorker> decode_to_worker(std::string_view text);

}  // namespace everstep::launcher
