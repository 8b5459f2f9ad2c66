#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "launcher/cli/signal_watch.h"
#include "launcher/worker/control_message.h"
#include "launcher/worker/control_socket.h"

namespace everstep::launcher {

struct WorkerStart {
  std::string program;
  std::vector<std::string> args;
  std::string log_path;              // takes what it writes to standard output and standard error
  bool takes_leave_signals = false;  // by a SignalWatch; they wait for it. Else they end it
};

struct WorkerEvent {
  int rank = 0;
  std::optional<FromWorker> message;  // nothing: its process ended
  int wait_status = 0;                // how, as waitpid tells it
};

// The worker processes of one run. Those that still live when it goes are killed and waited for: nothing is left
// behind. Each is a process group of its own, so that Ctrl-C reaches the supervisor alone.
class WorkerProcesses {
 public:
  WorkerProcesses() = default;
  WorkerProcesses(const WorkerProcesses&) = delete;
  WorkerProcesses& operator=(const WorkerProcesses&) = delete;
  ~WorkerProcesses() { kill_all(); }

  // Starts one more; its rank is how many there were before.
  Status start(const WorkerStart& worker);

  int size() const { return static_cast<int>(workers_.size()); }
  bool all_ended() const;

  void send(const ToWorker& message);
  // One that has ended gets nothing.
  void signal(int rank, int number) const;

  // Waits until something arrives from a worker, in `signals` or at `news` (a descriptor, or -1), at most `timeout`.
  // All that a worker said comes before its end. The end of its control socket is not told: the process ends too, or is
  // killed in the end.
  std::vector<WorkerEvent> wait(const SignalWatch& signals, int news, std::chrono::milliseconds timeout);

  // Kills and waits for all that live. Tells nothing about them.
  void kill_all();

 private:
  struct Worker {
    pid_t pid = -1;
    ControlSocket control{-1};
    bool is_open = true;
    bool has_ended = false;
  };

  void read_messages(int rank, std::vector<WorkerEvent>& events);

  std::vector<Worker> workers_;
};

}  // namespace everstep::launcher
