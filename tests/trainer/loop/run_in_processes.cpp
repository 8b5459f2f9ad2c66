#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/send_signal.h"
#include "tests/temporary_directory.h"
#include "tests/trainer/loop/all_workers.h"
#include "trainer/socket/socket_connector.h"
#include "trainer/wire/byte_codec.h"

namespace everstep::trainer {
namespace {

constexpr std::chrono::seconds kConnect{30};

// One end of a stream between a worker and its parent. Texts travel whole; the peer's end shows as an empty one.
class Pipe {
 public:
  explicit Pipe(int descriptor) : descriptor_(descriptor) {}
  Pipe(Pipe&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Pipe& operator=(Pipe&&) = delete;
  ~Pipe() { close_now(); }

  void write(const std::string& text) const {
    const std::size_t size = text.size();
    write_all(&size, sizeof size);
    write_all(text.data(), size);
  }

  std::string read() const {
    std::size_t size = 0;
    if (!read_all(&size, sizeof size)) return {};
    std::string text(size, '\0');
    return read_all(text.data(), size) ? text : std::string();
  }

  void close_now() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }

 private:
  void write_all(const void* data, std::size_t size) const {
    const char* next = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t written = ::send(descriptor_, next, size, MSG_NOSIGNAL);
      if (written <= 0) return;  // the other side is gone; who waits for its answer will notice
      next += written;
      size -= static_cast<std::size_t>(written);
    }
  }

  bool read_all(void* data, std::size_t size) const {
    char* next = static_cast<char*>(data);
    while (size > 0) {
      const ssize_t got = ::read(descriptor_, next, size);
      if (got <= 0) return false;
      next += got;
      size -= static_cast<std::size_t>(got);
    }
    return true;
  }

  int descriptor_;
};

std::pair<Pipe, Pipe> make_pipe() {
  int ends[2];
  EVERSTEP_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "no socket pair");
  return {Pipe(ends[0]), Pipe(ends[1])};
}

struct Child {
  Child(pid_t process, Pipe pipe) : pid(process), to_child(std::move(pipe)) {}
  Child(Child&& other) noexcept : pid(std::exchange(other.pid, -1)), to_child(std::move(other.to_child)) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (pid < 0) return;
    send_signal(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }

  pid_t pid;
  Pipe to_child;
};

Result<WorkerRun> connect_and_run(const TrainOptions& options, const DataSource& data, int worker, const Pipe& parent,
                                  const std::filesystem::path& sockets, const RunChanges& changes) {
  SocketOptions wire;
  wire.lineage = options.lineage;
  wire.runtime_directory = sockets;
  const auto connector = listen_for_peers(wire);
  if (!connector) return connector.error();
  parent.write((*connector)->address());
  PeerRoster roster{options.lineage, options.generation, 0, worker, {}};
  for (std::uint64_t peer = 0; peer < static_cast<std::uint64_t>(options.schedule.depth * options.schedule.width);
       ++peer) {
    roster.members.push_back({WorkerId{{1, peer}}, parent.read()});
  }
  const auto connected = (*connector)->connect(roster, kConnect);
  if (!connected.connection) return connected.connection.error();
  return run_worker(options, data, *connected.connection->transport, changes);
}

// "1" and the outcome, or "0", the code and the message.
std::string encode_result(const Result<WorkerRun>& run) {
  if (run) return "1" + encode_run(*run);
  return "0" + std::to_string(static_cast<int>(run.error().code)) + run.error().line();
}

Result<WorkerRun> decode_result(const std::string& bytes) {
  if (bytes.empty()) return Error{ErrorCode::kInternal, "died without a word", ""};
  if (bytes[0] == '1') return decode_run(std::string_view(bytes).substr(1));
  return Error{static_cast<ErrorCode>(bytes[1] - '0'), bytes.substr(2), ""};
}

}  // namespace

Result<std::vector<WorkerRun>> run_in_processes(const TrainOptions& options, const DataSource& data,
                                                const RunChanges& changes) {
  const int workers = options.schedule.depth * options.schedule.width;
  const TemporaryDirectory sockets;
  std::vector<Child> children;
  for (int worker = 0; worker < workers; ++worker) {
    auto [ours, theirs] = make_pipe();
    const pid_t pid = ::fork();
    EVERSTEP_CHECK(pid >= 0, "fork failed");
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (Child& sibling : children) sibling.to_child.close_now();
      ours.close_now();
      theirs.write(encode_result(connect_and_run(options, data, worker, theirs, sockets.path(), changes)));
      ::_exit(0);
    }
    children.emplace_back(pid, std::move(ours));
  }
  std::vector<std::string> addresses;
  for (const Child& child : children) addresses.push_back(child.to_child.read());
  for (const Child& child : children) {
    for (const std::string& address : addresses) child.to_child.write(address);
  }
  std::vector<Result<WorkerRun>> runs;
  for (const Child& child : children) runs.push_back(decode_result(child.to_child.read()));
  return all_or_first_error(std::move(runs));
}

}  // namespace everstep::trainer
