#pragma once

#include <memory>

#include "elastic/keys.h"
#include "elastic/kv_store.h"
#include "launcher/cli/command.h"
#include "launcher/cli/signal_watch.h"
#include "launcher/proof/audit.h"
#include "launcher/supervise/etcd_server.h"
#include "launcher/supervise/prepared_run.h"
#include "launcher/supervise/worker_processes.h"

namespace everstep::launcher {

// A real elastic job of this host for a rehearsal: an etcd of its own, and workers that somebody else starts and kills.
// Each says that it is on a host of its own, as the nodes of a trace are; else a host that lost several would get no
// more. Nothing of it lives when this goes.
class TraceJob {
 public:
  TraceJob(const Config& train, Streams& streams);
  TraceJob(const TraceJob&) = delete;
  TraceJob& operator=(const TraceJob&) = delete;
  ~TraceJob();

  // Everything but the workers.
  Outcome open();

  // The number must be how many were started before.
  Status start_worker(int number);
  void signal(int number, int signal) const { workers_.signal(number, signal); }
  std::vector<WorkerEvent> wait(std::chrono::milliseconds timeout) { return workers_.wait(*signals_, -1, timeout); }
  // The signal by which somebody asks this process to leave; nothing: nobody does.
  std::optional<int> leave_signal() const;
  bool all_ended() const { return workers_.all_ended(); }

  // Asks the job to save and stop at the window's end. Its workers have to be waited for.
  Status ask_to_stop();
  // Ends what still lives. Only the files are left, and can be looked at.
  void close();
  Result<AuditReport> audit();

  const PreparedRun& run() const { return run_; }

 private:
  Outcome create();

  Streams& streams_;
  Config config_;
  PreparedRun run_;
  std::unique_ptr<SignalWatch> signals_;  // made before the threads of the store
  std::unique_ptr<EtcdServer> etcd_;
  std::unique_ptr<elastic::KvStore> store_;
  WorkerProcesses workers_;
};

}  // namespace everstep::launcher
