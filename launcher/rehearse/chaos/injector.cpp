#include "launcher/rehearse/chaos/injector.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/text.h"
#include "launcher/cli/process_table.h"
#include "launcher/supervise/etcd_process.h"

namespace everstep::launcher::chaos {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// How long a newcomer has before its connections are disturbed: it is a member then.
constexpr milliseconds kNewcomerIsIn{2500};
constexpr milliseconds kBetweenServers{1500};
constexpr const char* kNobody = "nobody is there";

std::string text_of(const WorkerProcess& worker) { return worker.name + " (" + std::to_string(worker.pid) + ")"; }

std::string text_of(const Status& status, const std::string& otherwise) {
  return status ? otherwise : status.error().line();
}

}  // namespace

Status Injector::run(const Schedule& schedule) {
  for (const TimedFault& one : schedule.faults) {
    later(one.at, [this, &one] { return to_text(one.fault) + ": " + happen(one.fault, one.at); });
  }
  const auto start = Clock::now();
  while (!actions_.empty()) {
    const auto next = actions_.begin();
    const auto now = std::chrono::duration_cast<milliseconds>(Clock::now() - start);
    target_.job.revive();
    if (next->first > now) {
      EVERSTEP_TRY(waiting_.sleep(std::min(next->first - now, milliseconds(100))));
      continue;
    }
    const Action action = std::move(next->second);
    const Time at = next->first;
    actions_.erase(next);
    tell_(fixed_text(static_cast<double>(at.count()) / 1000, 2) + " s  " + action());
  }
  return {};
}

std::string Injector::happen(const Fault& fault, Time at) {
  switch (fault.kind) {
    case FaultKind::kEtcdKill:
    case FaultKind::kEtcdStop:
    case FaultKind::kEtcdAway:
    case FaultKind::kEtcdRoll:
    case FaultKind::kEtcdSplit:
      return happen_to_etcd(fault, at);
    case FaultKind::kFillDisk:
    case FaultKind::kSlowDisk:
      return happen_to_disk(fault, at);
    case FaultKind::kHalfOpen:
    case FaultKind::kCorrupt:
    case FaultKind::kDelay:
      return disturb(fault, at);
    case FaultKind::kCutOff:
    case FaultKind::kCutEtcd:
    case FaultKind::kCutPeers:
    case FaultKind::kThinLine:
      return cut(fault, at);
    case FaultKind::kFlipByte:
    case FaultKind::kHang:
    case FaultKind::kStray:
      return break_promise(fault.kind);
    default:
      return happen_to_workers(fault, at);
  }
}

std::string Injector::happen_to_workers(const Fault& fault, Time at) {
  switch (fault.kind) {
    case FaultKind::kKillWorker:
      return kill(pick(fault.pick));
    case FaultKind::kKillLeader: {
      const auto leader = target_.job.leader();
      return leader ? kill(leader) : "nobody leads now, " + kill(pick(0));
    }
    case FaultKind::kKillTwo: {
      const auto first = pick(fault.pick);
      const auto second = pick(fault.pick + 1);
      return kill(first) + ", " + kill(second);
    }
    case FaultKind::kKillAgain: {
      const auto second = pick(fault.pick + 1);
      later(at + fault.lasts, [this, second] { return "kill-again: " + kill(second); });
      return kill(pick(fault.pick));
    }
    case FaultKind::kKillAll:
      return kill_all(fault.number);
    case FaultKind::kKillAcked:
      return kill_acked(pick(fault.pick));
    case FaultKind::kCrashWorker: {
      const auto worker = pick(fault.pick);
      if (worker) target_.job.crash(*worker);
      return worker ? text_of(*worker) : kNobody;
    }
    case FaultKind::kOutOfMemory:
      return starve(pick(fault.pick), at + fault.lasts);
    case FaultKind::kTermKill:
      return terminate_and_kill(pick(fault.pick), at + fault.lasts);
    case FaultKind::kRevokeLease: {
      const auto worker = pick(fault.pick);
      return worker ? text_of(target_.job.revoke_lease(*worker), text_of(*worker)) : kNobody;
    }
    case FaultKind::kTermWorker: {
      const auto worker = pick(fault.pick);
      if (worker) target_.job.terminate(*worker);
      return worker ? text_of(*worker) : kNobody;
    }
    case FaultKind::kStopLeader: {
      const auto leader = target_.job.leader();
      return stop(leader ? leader : pick(0), at + fault.lasts);
    }
    case FaultKind::kStopWorker:
      return stop(pick(fault.pick), at + fault.lasts);
    case FaultKind::kJoin:
      return join(fault.number);
    case FaultKind::kScale:
      return scale(fault.number);
    default:
      return "is nothing that happens to workers";
  }
}

std::optional<WorkerProcess> Injector::pick(int number) {
  const auto all = target_.job.workers();
  if (all.empty()) return std::nullopt;
  return all[static_cast<std::size_t>(number) % all.size()];
}

std::string Injector::kill(const std::optional<WorkerProcess>& worker) {
  if (!worker) return kNobody;
  target_.job.kill(*worker);
  return text_of(*worker);
}

// Between its word and the commit are a few milliseconds.
std::string Injector::kill_acked(const std::optional<WorkerProcess>& worker) {
  if (!worker) return kNobody;
  constexpr milliseconds kAcksWithin{2000};
  const auto limit = Clock::now() + kAcksWithin;
  bool has_acked = false;
  while (!has_acked && Clock::now() < limit) has_acked = target_.job.has_acked(*worker);
  return kill(worker) + (has_acked ? "" : ", which has saved nothing for a while");
}

std::string Injector::terminate_and_kill(const std::optional<WorkerProcess>& worker, Time end) {
  if (!worker) return kNobody;
  target_.job.terminate(*worker);
  later(end, [this, worker] { return "term-kill: " + kill(worker); });
  return text_of(*worker);
}

// A newcomer makes everybody want memory, for another generation. One that has done without it so far is killed as it
// would have been.
std::string Injector::starve(const std::optional<WorkerProcess>& worker, Time end) {
  if (!worker) return kNobody;
  auto memory = MemoryLimit::make();
  if (!memory) return memory.error().line();
  memory_ = std::move(*memory);
  target_.job.expect_kill(*worker);
  const std::string confined = text_of(memory_->confine(worker->pid), text_of(*worker));
  later(end, [this, worker] {
    const bool is_dead = !lives(worker->pid);
    target_.job.kill(*worker);
    return "out-of-memory: " + text_of(*worker) + (is_dead ? " is dead" : " did without more, and is killed");
  });
  return confined + ", and joins: " + join(1);
}

std::string Injector::stop(const std::optional<WorkerProcess>& worker, Time end) {
  if (!worker) return kNobody;
  ::kill(worker->pid, SIGSTOP);
  later(end, [worker] {
    ::kill(worker->pid, SIGCONT);
    return text_of(*worker) + " goes on";
  });
  return text_of(*worker);
}

std::string Injector::kill_all(int others) {
  const auto all = target_.job.workers();
  for (const WorkerProcess& worker : all) target_.job.kill(worker);
  return counted(std::ssize(all), "worker", "workers") + " killed, " + join(others);
}

std::string Injector::join(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    const auto worker = target_.job.join();
    text.append(text.empty() ? "" : ", ").append(worker ? text_of(*worker) : worker.error().line());
  }
  return text;
}

std::string Injector::scale(int by) {
  if (target_.job.train_is_running()) return text_of(target_.job.scale(by), "asked");
  if (by > 0) return "everstep train has ended, instead: " + join(by);
  const auto all = target_.job.workers();
  if (!all.empty()) target_.job.terminate(all.back());
  return "everstep train has ended, instead SIGTERM to " + (all.empty() ? "nobody" : text_of(all.back()));
}

std::string Injector::disturb(const Fault& fault, Time at) {
  const int port = unused_port();
  auto proxy = TcpProxy::start(port);
  if (!proxy) return proxy.error().line();
  TcpProxy* const before = proxies_.emplace_back(std::move(*proxy)).get();
  const std::string ports = std::to_string(port) + "-" + std::to_string(port);
  const auto worker = target_.job.join({"--port-range=" + ports, std::string("--advertise=") + TcpProxy::kAddress});
  if (!worker) return worker.error().line();
  const TcpProxy::Mode mode = fault.kind == FaultKind::kHalfOpen  ? TcpProxy::Mode::kHold
                              : fault.kind == FaultKind::kCorrupt ? TcpProxy::Mode::kCorrupt
                                                                  : TcpProxy::Mode::kDelay;
  const std::string name(form_of(fault.kind).name);
  later(at + std::min(kNewcomerIsIn, fault.lasts), [=] {
    before->set(mode);
    return name + ": begins for " + text_of(*worker);
  });
  later(at + fault.lasts, [=] {
    before->set(TcpProxy::Mode::kPass);
    return name + ": is over";
  });
  return text_of(*worker) + " joins";
}

std::string Injector::cut(const Fault& fault, Time at) {
  if (target_.far == nullptr) return "there is no other host";
  FarHost& far = *target_.far;
  const auto worker = target_.job.join_from(far, target_.etcd);
  if (!worker) return worker.error().line();
  const bool is_thin = fault.kind == FaultKind::kThinLine;
  const FarHost::Cut cut = fault.kind == FaultKind::kCutOff    ? FarHost::Cut::kAll
                           : fault.kind == FaultKind::kCutEtcd ? FarHost::Cut::kEtcd
                                                               : FarHost::Cut::kPeers;
  const std::string name(form_of(fault.kind).name);
  later(at + std::min(kNewcomerIsIn, fault.lasts),
        [=, &far] { return text_of(is_thin ? far.thin() : far.cut(cut), name + ": begins for " + text_of(*worker)); });
  later(at + fault.lasts, [=, &far] { return text_of(far.heal(), name + ": is over"); });
  return text_of(*worker) + " joins";
}

std::string Injector::happen_to_etcd(const Fault& fault, Time at) {
  EtcdServers& etcd = target_.etcd;
  const Time end = at + fault.lasts;
  if (fault.kind == FaultKind::kEtcdRoll) return roll_etcd(at);
  if (fault.kind == FaultKind::kEtcdSplit) return split_etcd(end);
  const int leader = etcd.leader();
  if (fault.kind == FaultKind::kEtcdKill) {
    etcd.kill(leader);
    later(end, [&etcd, leader] {
      return text_of(etcd.restart(leader), "etcd-" + std::to_string(leader) + " starts again");
    });
    return "etcd-" + std::to_string(leader);
  }
  const bool all = fault.kind == FaultKind::kEtcdAway;
  for (int server = 0; server < etcd.size(); ++server) {
    if (!all && server != leader) continue;
    etcd.freeze(server);
    later(end, [&etcd, server] {
      etcd.thaw(server);
      return "etcd-" + std::to_string(server) + " goes on";
    });
  }
  return all ? "all servers" : "etcd-" + std::to_string(leader);
}

std::string Injector::roll_etcd(Time at) {
  EtcdServers& etcd = target_.etcd;
  for (int server = 1; server < etcd.size(); ++server) {
    later(at + server * kBetweenServers,
          [&etcd, server] { return text_of(etcd.restart(server), "etcd-roll: etcd-" + std::to_string(server)); });
  }
  return text_of(etcd.restart(0), "etcd-0");
}

std::string Injector::split_etcd(Time end) {
  if (target_.far == nullptr) return "there is no other host";
  const std::string name = "etcd-" + std::to_string(target_.etcd.size() - 1);
  later(end, [this, name] { return text_of(target_.far->heal(), "etcd-split: " + name + " is back"); });
  return text_of(target_.far->cut(FarHost::Cut::kAll), name);
}

std::string Injector::happen_to_disk(const Fault& fault, Time at) {
  if (fault.kind == FaultKind::kFillDisk) {
    if (target_.disk == nullptr) return "there is no small disk";
    later(at + fault.lasts, [this] {
      target_.disk->make_room();
      return std::string("fill-disk: there is room again");
    });
    return text_of(target_.disk->fill(), "full");
  }
  std::vector<pid_t> processes;
  for (const WorkerProcess& worker : target_.job.workers()) processes.push_back(worker.pid);
  auto slow = SlowDisk::start(processes, std::chrono::seconds(fault.number), target_.directory / "strace.log");
  if (!slow) return slow.error().line();
  slow_.push_back(std::move(*slow));
  later(at + fault.lasts, [this] {
    slow_.back().stop();
    return std::string("slow-disk: is over");
  });
  return counted(std::ssize(processes), "worker", "workers");
}

std::string Injector::break_promise(FaultKind kind) {
  if (kind == FaultKind::kFlipByte) {
    flips_byte_ = true;
    return "once the job has ended";
  }
  if (kind == FaultKind::kHang) {
    const auto all = target_.job.workers();
    if (!all.empty()) ::kill(all.back().pid, SIGSTOP);
    return all.empty() ? kNobody : text_of(all.back()) + ", for ever";
  }
  // The shell ends at once, and leaves it to us.
  auto shell = ChildProcess::start({"sh", "-c", "sleep 600 & exit"}, target_.directory / "stray.log");
  if (!shell) return shell.error().line();
  shell->ends_within(milliseconds(5000));
  return "sleep 600";
}

}  // namespace everstep::launcher::chaos
