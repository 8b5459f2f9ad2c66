#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/tick.h"
#include "launcher/cli/progress_line.h"
#include "launcher/cli/signal_watch.h"

namespace everstep::launcher {

// "734 B", "12.5 KiB", "3.1 GiB".
std::string size_text(std::uint64_t bytes);

// "verifying  62 %  310.2 MiB of 500.0 MiB  820.1 MiB/s  1s left"
std::string work_text(const std::string& what, std::uint64_t done, std::uint64_t total, double seconds);

// Work on many bytes: shows on a terminal how far it is, and turns Ctrl-C and SIGTERM into a question whether to go on,
// so that what was begun can be taken back. One at a time, made before any thread; used by one thread.
class LongWork {
 public:
  // `what` it is, for people: "verifying".
  LongWork(Streams& streams, std::string what, std::uint64_t total_bytes);

  // False: stop, somebody wants us to.
  bool advance_to(std::uint64_t done);
  bool is_stopped();

  // kCancelled, naming the signal.
  Error stopped_error() const;

 private:
  std::string what_;
  std::uint64_t total_;
  Tick start_;
  Tick shown_at_;
  SignalWatch signals_;
  std::optional<int> stop_signal_;
  ProgressLine line_;
};

}  // namespace everstep::launcher
