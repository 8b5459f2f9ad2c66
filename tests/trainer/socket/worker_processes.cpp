#include "tests/trainer/socket/worker_processes.h"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <utility>

#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "tests/send_signal.h"
#include "tests/trainer/socket/loopback_workers.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;

void write_all(int pipe, const void* bytes, std::size_t size) {
  EVERSTEP_CHECK(::send(pipe, bytes, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size), "the test's pipe broke");
}

void read_all(int pipe, void* bytes, std::size_t size) {
  EVERSTEP_CHECK(::recv(pipe, bytes, size, MSG_WAITALL) == static_cast<ssize_t>(size), "the test's pipe broke");
}

void write_text(int pipe, const std::string& text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  write_all(pipe, &size, sizeof size);
  write_all(pipe, text.data(), size);
}

std::string read_text(int pipe) {
  std::uint32_t size = 0;
  read_all(pipe, &size, sizeof size);
  std::string text(size, '\0');
  read_all(pipe, text.data(), size);
  return text;
}

void go_to_host_of(pid_t process) {
  const auto host = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  EVERSTEP_CHECK(host >= 0 && ::setns(host, CLONE_NEWNET | CLONE_NEWNS) == 0, "setns failed");
  ::close(host);
}

}  // namespace

void WorkerProcesses::run_worker(int worker, Wire wire, const std::vector<WorkerPlace>& places, int pipe,
                                 const Body& body) const {
  if (places[worker].host != 0) go_to_host_of(places[worker].host);
  SocketOptions options = options_of(wire);
  options.lineage = kTestLineage;
  if (options.tcp) {
    options.tcp->bind = places[worker].address;
  } else {
    options.runtime_directory = directory_.file("run");
  }
  const auto connector = listen_for_peers(options).value();
  write_text(pipe, connector->address());
  std::vector<std::string> addresses(places.size());
  for (std::string& address : addresses) address = read_text(pipe);
  PeerConnection connection = std::move(connector->connect(test_roster(worker, addresses), 30s).connection).value();
  write_text(pipe, body(connection, [pipe] { write_text(pipe, "ready"); }));
}

WorkerProcesses::WorkerProcesses(Wire wire, const std::vector<WorkerPlace>& places, const Body& body) {
  for (int worker = 0; worker < std::ssize(places); ++worker) {
    int pipes[2];
    EVERSTEP_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pipes) == 0, "socketpair failed");
    const pid_t process = ::fork();
    EVERSTEP_CHECK(process >= 0, "fork failed");
    if (process == 0) {
      ::close(pipes[0]);
      for (const Worker& other : workers_) ::close(other.pipe);
      run_worker(worker, wire, places, pipes[1], body);
      ::_exit(0);
    }
    ::close(pipes[1]);
    workers_.push_back({process, pipes[0]});
  }
  std::vector<std::string> addresses;
  for (const Worker& worker : workers_) addresses.push_back(read_text(worker.pipe));
  for (const Worker& worker : workers_) {
    for (const std::string& address : addresses) write_text(worker.pipe, address);
  }
}

WorkerProcesses::~WorkerProcesses() {
  for (const Worker& worker : workers_) {
    if (worker.process > 0) {
      everstep::send_signal(worker.process, SIGKILL);
      ::waitpid(worker.process, nullptr, 0);
    }
    ::close(worker.pipe);
  }
}

void WorkerProcesses::wait_until_ready() {
  for (const Worker& worker : workers_) EVERSTEP_CHECK(read_text(worker.pipe) == "ready", "a worker is not ready");
}

void WorkerProcesses::send_signal(int worker, int signal) { everstep::send_signal(workers_[worker].process, signal); }

std::string WorkerProcesses::finish(int worker) {
  int status = 0;
  EVERSTEP_CHECK(::waitpid(workers_[worker].process, &status, 0) == workers_[worker].process, "waitpid failed");
  workers_[worker].process = 0;
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  if (WEXITSTATUS(status) != 0) return "exit " + std::to_string(WEXITSTATUS(status));
  return read_text(workers_[worker].pipe);
}

}  // namespace everstep::trainer
