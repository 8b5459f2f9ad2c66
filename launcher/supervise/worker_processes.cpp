#include "launcher/supervise/worker_processes.h"

#include <algorithm>
#include <csignal>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace everstep::launcher {
namespace {

// The settings of posix_spawn, which it wants to be destroyed.
class SpawnSettings {
 public:
  SpawnSettings() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }

  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Zero, or the errno that stopped us.
int spawn(const WorkerStart& worker, int control, pid_t& pid) {
  SpawnSettings settings;
  constexpr int kLogMode = 0600;
  ::posix_spawn_file_actions_addopen(&settings.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&settings.actions, STDOUT_FILENO, worker.log_path.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, kLogMode);
  ::posix_spawn_file_actions_adddup2(&settings.actions, STDOUT_FILENO, STDERR_FILENO);
  // Also when the two are the same number: the child's copy survives the exec then too.
  ::posix_spawn_file_actions_adddup2(&settings.actions, control, kControlDescriptor);
  sigset_t blocked = leave_signals();
  if (!worker.takes_leave_signals) ::sigemptyset(&blocked);
  ::posix_spawnattr_setsigmask(&settings.attributes, &blocked);
  ::posix_spawnattr_setpgroup(&settings.attributes, 0);
  ::posix_spawnattr_setflags(&settings.attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> args{worker.program};
  args.insert(args.end(), worker.args.begin(), worker.args.end());
  return ::posix_spawn(&pid, worker.program.c_str(), &settings.actions, &settings.attributes, pointers(args).data(),
                       environ);
}

}  // namespace

Status WorkerProcesses::start(const WorkerStart& worker) {
  auto ends = ControlSocket::make_pair();
  if (!ends) return ends.error();
  Worker started;
  started.control = std::move(ends->first);
  const int error = spawn(worker, ends->second.fd(), started.pid);
  if (error != 0) {
    return Error{ErrorCode::kUnavailable,
                 "cannot start " + worker.program + ": " + std::generic_category().message(error),
                 "it belongs beside the program everstep"};
  }
  workers_.push_back(std::move(started));
  return {};
}

bool WorkerProcesses::all_ended() const {
  return std::all_of(workers_.begin(), workers_.end(), [](const Worker& worker) { return worker.has_ended; });
}

void WorkerProcesses::send(const ToWorker& message) {
  const std::string text = encode(message);
  // One that does not take it has ended or will be found silent.
  for (const Worker& worker : workers_) {
    if (!worker.has_ended) worker.control.send(text);
  }
}

void WorkerProcesses::signal(int rank, int number) const {
  const Worker& worker = workers_[rank];
  if (!worker.has_ended) ::kill(worker.pid, number);
}

void WorkerProcesses::read_messages(int rank, std::vector<WorkerEvent>& events) {
  Worker& worker = workers_[rank];
  while (worker.is_open && worker.control.readable(0)) {
    const auto text = worker.control.receive();
    worker.is_open = text.has_value();
    if (!text) return;
    auto message = decode_from_worker(*text);
    events.push_back({rank, message ? *std::move(message) : FromWorker(message.error()), 0});
  }
}

std::vector<WorkerEvent> WorkerProcesses::wait(const SignalWatch& signals, int news,
                                               std::chrono::milliseconds timeout) {
  std::vector<pollfd> entries{{signals.fd(), POLLIN, 0}, {news, POLLIN, 0}};
  for (const Worker& worker : workers_) entries.push_back({worker.is_open ? worker.control.fd() : -1, POLLIN, 0});
  ::poll(entries.data(), entries.size(), static_cast<int>(timeout.count()));

  std::vector<WorkerEvent> events;
  for (int rank = 0; rank < size(); ++rank) {
    Worker& worker = workers_[rank];
    int status = 0;
    const bool ends = !worker.has_ended && ::waitpid(worker.pid, &status, WNOHANG) == worker.pid;
    read_messages(rank, events);
    if (!ends) continue;
    worker.has_ended = true;
    // Workers may come and go for months: what is left of one is a few bytes.
    worker.is_open = false;
    worker.control = ControlSocket(-1);
    events.push_back({rank, std::nullopt, status});
  }
  return events;
}

void WorkerProcesses::kill_all() {
  for (const Worker& worker : workers_) {
    if (!worker.has_ended) ::kill(worker.pid, SIGKILL);
  }
  for (Worker& worker : workers_) {
    if (!std::exchange(worker.has_ended, true)) ::waitpid(worker.pid, nullptr, 0);
  }
}

}  // namespace everstep::launcher
