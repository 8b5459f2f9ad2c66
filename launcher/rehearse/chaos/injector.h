#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "launcher/rehearse/chaos/chaos_job.h"
#include "launcher/rehearse/chaos/etcd_servers.h"
#include "launcher/rehearse/chaos/far_host.h"
#include "launcher/rehearse/chaos/memory_limit.h"
#include "launcher/rehearse/chaos/schedule.h"
#include "launcher/rehearse/chaos/slow_disk.h"
#include "launcher/rehearse/chaos/small_disk.h"
#include "launcher/rehearse/chaos/tcp_proxy.h"
#include "launcher/rehearse/chaos/waiting.h"

namespace everstep::launcher::chaos {

// What faults happen to.
struct Target {
  ChaosJob& job;
  EtcdServers& etcd;
  SmallDisk* disk = nullptr;        // the checkpoints' own, if the schedule fills it
  FarHost* far = nullptr;           // if the schedule cuts cables
  std::filesystem::path directory;  // for logs
};

// Makes the faults of a schedule happen, each at its time, and takes back those that last for a while. What happens
// that cannot (a leader while there is none) happens to somebody else, and its line says so.
class Injector {
 public:
  // `tell` gets one line for each thing that happens.
  Injector(Target target, Waiting& waiting, std::function<void(const std::string& line)> tell)
      : target_(std::move(target)), waiting_(waiting), tell_(std::move(tell)) {}

  // Returns when the last fault is over. kCancelled: somebody asked us to stop.
  Status run(const Schedule& schedule);

  // A byte of the newest checkpoint is to change once the job has ended.
  bool flips_byte() const { return flips_byte_; }

 private:
  using Time = std::chrono::milliseconds;
  using Action = std::function<std::string()>;  // says what it did

  std::string happen(const Fault& fault, Time at);
  std::string happen_to_workers(const Fault& fault, Time at);
  std::string happen_to_etcd(const Fault& fault, Time at);
  std::string happen_to_disk(const Fault& fault, Time at);
  std::string break_promise(FaultKind kind);
  void later(Time at, Action action) { actions_.emplace(at, std::move(action)); }

  std::optional<WorkerProcess> pick(int number);
  std::string kill(const std::optional<WorkerProcess>& worker);
  std::string stop(const std::optional<WorkerProcess>& worker, Time end);
  std::string kill_acked(const std::optional<WorkerProcess>& worker);
  std::string terminate_and_kill(const std::optional<WorkerProcess>& worker, Time end);
  std::string starve(const std::optional<WorkerProcess>& worker, Time end);
  std::string kill_all(int others);
  std::string join(int count);
  std::string scale(int by);
  std::string disturb(const Fault& fault, Time at);
  std::string cut(const Fault& fault, Time at);
  std::string roll_etcd(Time at);
  std::string split_etcd(Time end);

  Target target_;
  Waiting& waiting_;
  std::function<void(const std::string& line)> tell_;
  std::multimap<Time, Action> actions_;
  std::vector<std::unique_ptr<TcpProxy>> proxies_;
  std::vector<SlowDisk> slow_;
  std::unique_ptr<MemoryLimit> memory_;
  bool flips_byte_ = false;
};

}  // namespace everstep::launcher::chaos
