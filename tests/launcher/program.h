#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <sys/types.h>

namespace everstep::launcher {

struct Ended {
  int exit_code = -1;  // negative: the signal that ended it
  std::string out;
  std::string log;
};

// "The everstep program" is that of the build, or what the variable TEST_PROGRAM of the test names.

// Runs the everstep program with these arguments and only these variables ("NAME=value") to its end; FAKE_HOST, which
// only fake devices read, is this process.
Ended run_program(const std::vector<std::string>& args, const std::vector<std::string>& environment = {});

// The same under another program, such as strace, whose name and arguments stand before its own.
Ended run_program_under(const std::vector<std::string>& wrapper, const std::vector<std::string>& args);

// The program while it runs. It is killed if nobody waited for its end.
class RunningProgram {
 public:
  // `wrapper` is another program with its arguments, such as nohup, that becomes this one.
  explicit RunningProgram(const std::vector<std::string>& args, const std::vector<std::string>& environment = {},
                          std::vector<std::string> wrapper = {});
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;
  ~RunningProgram();

  pid_t pid() const { return pid_; }
  // The processes that it started and that are still there, oldest first.
  std::vector<pid_t> children() const;
  void signal(int number) const;  // not once its end was waited for
  // What it has written to standard error so far.
  std::string log() const;
  // Its end, or what there is when the time is over; it is killed then.
  Ended wait(std::chrono::seconds limit);

 private:
  std::FILE* out_;
  std::FILE* log_;
  pid_t pid_;
};

// Variables for a job whose workers rest that long between two ops (tests/launcher/worker/paced_stage.h), so that
// several jobs can run at once; and these.
inline constexpr std::chrono::microseconds kPace{1500};
std::vector<std::string> paced(std::vector<std::string> environment = {}, std::chrono::microseconds pace = kPace);

// Adds options; those of the same name go.
void replace_options(std::vector<std::string>& words, const std::vector<std::string>& more);

// Whether the process is gone, or only waits to be counted out, before the time is over.
bool is_gone_within(pid_t process, std::chrono::milliseconds limit);

// Runs it with standard output at a place that fails: a device such as /dev/full, or a pipe without a reader if empty.
Ended run_program_into(const std::string& device, const std::vector<std::string>& args);

}  // namespace everstep::launcher
