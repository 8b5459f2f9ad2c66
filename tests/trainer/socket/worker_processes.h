#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "tests/temporary_directory.h"
#include "tests/trainer/socket/wires.h"

namespace everstep::trainer {

struct WorkerPlace {
  std::string address = "127.0.0.1";
  pid_t host = 0;  // any process of the host that it runs on, if that has a network of its own; 0: here
};

// Real workers, one forked process each, connected by sockets. The test's own process must not have threads: a fork
// would leave them behind.
class WorkerProcesses {
 public:
  // What a worker does once it is connected, and what it has to say about it. `ready` tells the test that it may act.
  using Body = std::function<std::string(PeerConnection& connection, const std::function<void()>& ready)>;

  WorkerProcesses(Wire wire, int workers, const Body& body)
      : WorkerProcesses(wire, std::vector<WorkerPlace>(workers), body) {}
  WorkerProcesses(Wire wire, const std::vector<WorkerPlace>& places, const Body& body);
  ~WorkerProcesses();  // kills and reaps what still runs

  WorkerProcesses(const WorkerProcesses&) = delete;
  WorkerProcesses& operator=(const WorkerProcesses&) = delete;

  // Until every worker called ready().
  void wait_until_ready();

  void send_signal(int worker, int signal);

  // Waits for the worker's end; what it said, or "signal 9" or "exit 3".
  std::string finish(int worker);

 private:
  struct Worker {
    pid_t process = 0;
    int pipe = -1;
  };

  void run_worker(int worker, Wire wire, const std::vector<WorkerPlace>& places, int pipe, const Body& body) const;

  TemporaryDirectory directory_;
  std::vector<Worker> workers_;
};

}  // namespace everstep::trainer
