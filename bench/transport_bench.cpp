// Usage: transport_bench WIRE [WHAT…]
//
// Measures the transport between two processes of this machine. WIRE: unix (within a host), tls (between hosts), or tcp
// (plain sockets without the transport, to compare with). The hosts of tls and tcp are two network namespaces, which
// needs root; elsewhere both are on the loopback device, and the first line says so.
//
// WHAT: latency (one way, the median, by size), stream (GB/s, by size), beside (a 4 KiB frame while 8 MiB frames pass
// on another channel). All of them unless told. One line each: what, bytes, value, unit.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trainer/socket/socket_connector.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct Size {
  std::size_t bytes;
  int rounds;
};
constexpr Size kSizes[] = {{4 << 10, 3000}, {64 << 10, 2000}, {512 << 10, 500}, {8 << 20, 40}};
constexpr auto kLimit = 30s;

double microseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void print(const char* what, std::size_t bytes, double value, const char* unit) {
  std::printf("%-8s %9zu %10.2f %s\n", what, bytes, value, unit);
  std::fflush(stdout);
}

// One process's end of the pipe between the two.
struct Pipe {
  int socket = -1;

  std::string exchange(const std::string& mine) const {
    EVERSTEP_CHECK(::send(socket, mine.data(), mine.size(), MSG_NOSIGNAL) > 0, "the pipe broke");
    std::string theirs(4096, '\0');
    const ssize_t size = ::recv(socket, theirs.data(), theirs.size(), 0);
    EVERSTEP_CHECK(size > 0, "the other process ended");
    theirs.resize(static_cast<std::size_t>(size));
    return theirs;
  }
  void meet() const { exchange("here"); }
};

// Where the two processes are.
struct Hosts {
  std::array<std::string, 2> addresses{"127.0.0.1", "127.0.0.1"};
};

// Not a key that anybody should use.
storage::Digest bench_seal(std::string_view text) { return unkeyed_seal("bench" + std::string(text)); }

std::unique_ptr<Transport> connect(PeerConnector& connector, int worker, const Pipe& pipe) {
  std::vector<std::string> addresses{connector.address(), pipe.exchange(connector.address())};
  if (worker == 1) std::swap(addresses[0], addresses[1]);
  const PeerRoster roster{0, {}, 0, worker, {{WorkerId{{0, 1}}, addresses[0]}, {WorkerId{{0, 2}}, addresses[1]}}};
  ConnectOutcome outcome = connector.connect(roster, kLimit);
  EVERSTEP_CHECK(outcome.connection.ok(), outcome.connection.error().line());
  return std::move(outcome.connection->transport);
}

FrameHeader header_of(std::int64_t number, std::size_t bytes) {
  FrameHeader header;
  header.window = number;
  header.length = bytes;
  return header;
}

void take(Transport& transport, ReceiveId receive) {
  const Result<FrameHeader> received = transport.wait(receive, kLimit);
  EVERSTEP_CHECK(received.ok(), received.error().line());
}

// Worker 0 sends first, worker 1 sends it back. The receive of the next frame is always posted ahead.
void measure_latency(Transport& transport, const Size& size) {
  const int peer = 1 - transport.worker();
  const Buffer out = allocate_zeroed(size.bytes);
  const Buffer in = allocate_zeroed(size.bytes);
  std::vector<double> times;
  for (int round = 0; round < size.rounds; ++round) {
    const FrameHeader header = header_of(round, size.bytes);
    const ReceiveId receive = transport.post_receive(peer, Channel::kTensors, header, in);
    const auto begin = Clock::now();
    if (transport.worker() == 0) transport.send(peer, Channel::kTensors, header, out);
    take(transport, receive);
    if (transport.worker() == 1) transport.send(peer, Channel::kTensors, header, out);
    times.push_back(microseconds_since(begin) / 2);
  }
  if (transport.worker() == 0) print("latency", size.bytes, median(times), "us");
}

// Worker 0 sends as fast as worker 1 takes; a last frame comes back.
void measure_stream(Transport& transport, const Size& size) {
  constexpr int kAhead = 4;
  const int peer = 1 - transport.worker();
  const FrameHeader last = header_of(-1, 8);
  const auto begin = Clock::now();
  if (transport.worker() == 0) {
    const ReceiveId end = transport.post_receive(peer, Channel::kRecords, last, allocate_zeroed(8));
    const Buffer out = allocate_zeroed(size.bytes);
    for (int i = 0; i < size.rounds; ++i) transport.send(peer, Channel::kTensors, header_of(i, size.bytes), out);
    take(transport, end);
    const double bytes = static_cast<double>(size.bytes) * size.rounds;
    print("stream", size.bytes, bytes / microseconds_since(begin) * 1e-3, "GB/s");
    return;
  }
  std::array<Buffer, kAhead> into;
  for (Buffer& buffer : into) buffer = allocate_zeroed(size.bytes);
  std::deque<ReceiveId> posted;
  for (int i = 0; i < size.rounds + kAhead; ++i) {
    if (i >= kAhead) {
      take(transport, posted.front());
      posted.pop_front();
    }
    if (i < size.rounds) {
      posted.push_back(transport.post_receive(peer, Channel::kTensors, header_of(i, size.bytes), into[i % kAhead]));
    }
  }
  transport.send(peer, Channel::kRecords, last, allocate_zeroed(8));
}

// Each small frame that comes back says how many large ones have come, so that a few are always under way.
void measure_beside_bulk(Transport& transport) {
  constexpr int kRounds = 400;
  constexpr int kUnderWay = 3;
  constexpr std::size_t kBulk = 8 << 20;
  constexpr std::size_t kSmall = 4096;
  const int peer = 1 - transport.worker();
  const Buffer in = allocate_zeroed(kSmall);
  const Buffer out = allocate_zeroed(kSmall);
  const Buffer bulk = allocate_zeroed(kBulk);
  std::vector<double> times;
  std::int64_t bulk_sent = 0;
  std::int64_t bulk_came = 0;
  std::deque<ReceiveId> posted;
  std::int64_t bulk_posted = 0;
  for (int round = 0; round < kRounds; ++round) {
    if (transport.worker() == 0) {
      for (; bulk_sent < bulk_came + kUnderWay; ++bulk_sent) {
        transport.send(peer, Channel::kCopies, header_of(bulk_sent, kBulk), bulk);
      }
      const auto begin = Clock::now();
      const ReceiveId receive = transport.post_receive(peer, Channel::kRecords, header_of(round, kSmall), in);
      transport.send(peer, Channel::kRecords, header_of(round, kSmall), out);
      take(transport, receive);
      times.push_back(microseconds_since(begin) / 2);
      std::memcpy(&bulk_came, in.data, sizeof bulk_came);
      ::usleep(200);
    } else {
      for (; bulk_posted < bulk_came + kUnderWay + 1; ++bulk_posted) {
        posted.push_back(transport.post_receive(peer, Channel::kCopies, header_of(bulk_posted, kBulk), bulk));
      }
      take(transport, transport.post_receive(peer, Channel::kRecords, header_of(round, kSmall), in));
      while (transport.ready(posted.front())) {
        take(transport, posted.front());
        posted.pop_front();
        ++bulk_came;
      }
      std::memcpy(out.data, &bulk_came, sizeof bulk_came);
      transport.send(peer, Channel::kRecords, header_of(round, kSmall), out);
      EVERSTEP_CHECK(transport.flush(kLimit).ok(), "the small frame does not leave");
    }
  }
  if (transport.worker() == 0) {
    print("beside", kSmall, median(times), "us");
    print("bulk", kBulk, static_cast<double>(bulk_came), "frames passed meanwhile");
  }
}

struct Task {
  std::string wire;
  std::vector<std::string> what;

  bool wants(const std::string& name) const {
    return what.empty() || std::find(what.begin(), what.end(), name) != what.end();
  }
};

void run_transport(const Task& task, int worker, const Pipe& pipe, const Hosts& hosts) {
  SocketOptions options;
  const auto directory = std::filesystem::temp_directory_path() / ("everstep-bench-" + std::to_string(::getuid()));
  if (task.wire == "unix") options.runtime_directory = directory;
  if (task.wire == "tls") {
    options.tcp.emplace();
    options.tcp->bind = hosts.addresses[worker];
    options.seal = bench_seal;
  }
  const auto connector = listen_for_peers(options);
  EVERSTEP_CHECK(connector.ok(), connector.error().line());
  const std::unique_ptr<Transport> transport = connect(**connector, worker, pipe);
  if (task.wants("latency")) {
    for (const Size& size : kSizes) measure_latency(*transport, size);
  }
  if (task.wants("stream")) {
    for (const Size& size : kSizes) measure_stream(*transport, size);
  }
  pipe.meet();
  if (task.wants("beside")) measure_beside_bulk(*transport);
  pipe.meet();
  transport->leave();
}

void move_all(int socket, char* bytes, std::size_t count, ssize_t (*move)(int, char*, std::size_t)) {
  while (count > 0) {
    const ssize_t moved = move(socket, bytes, count);
    EVERSTEP_CHECK(moved > 0, "a plain connection broke");
    bytes += moved;
    count -= static_cast<std::size_t>(moved);
  }
}
void send_all(int socket, std::vector<char>& bytes) {
  move_all(socket, bytes.data(), bytes.size(),
           [](int to, char* from, std::size_t count) { return ::send(to, from, count, MSG_NOSIGNAL); });
}
void receive_all(int socket, std::vector<char>& bytes) {
  move_all(socket, bytes.data(), bytes.size(),
           [](int from, char* into, std::size_t count) { return ::recv(from, into, count, 0); });
}

int plain_connection(int worker, const Pipe& pipe, const Hosts& hosts) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, hosts.addresses[0].c_str(), &address.sin_addr);
  socklen_t size = sizeof address;
  int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  if (worker == 0) {
    EVERSTEP_CHECK(::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0 && ::listen(socket, 1) == 0 &&
                       ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0,
                   "cannot listen");
    pipe.exchange(std::to_string(ntohs(address.sin_port)));
    socket = ::accept(socket, nullptr, nullptr);
  } else {
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(pipe.exchange("?"))));
    EVERSTEP_CHECK(::connect(socket, reinterpret_cast<sockaddr*>(&address), size) == 0, "cannot connect");
  }
  const int at_once = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
  return socket;
}

void run_plain(const Task& task, int worker, const Pipe& pipe, const Hosts& hosts) {
  const int socket = plain_connection(worker, pipe, hosts);
  for (const Size& size : kSizes) {
    if (!task.wants("latency")) break;
    std::vector<char> bytes(size.bytes);
    std::vector<double> times;
    for (int round = 0; round < size.rounds; ++round) {
      const auto begin = Clock::now();
      if (worker == 0) send_all(socket, bytes);
      receive_all(socket, bytes);
      if (worker == 1) send_all(socket, bytes);
      times.push_back(microseconds_since(begin) / 2);
    }
    if (worker == 0) print("latency", size.bytes, median(times), "us");
  }
  for (const Size& size : kSizes) {
    if (!task.wants("stream")) break;
    std::vector<char> bytes(size.bytes);
    std::vector<char> last(8);
    const auto begin = Clock::now();
    for (int round = 0; round < size.rounds; ++round)
      worker == 0 ? send_all(socket, bytes) : receive_all(socket, bytes);
    worker == 0 ? receive_all(socket, last) : send_all(socket, last);
    if (worker == 0) {
      print("stream", size.bytes, static_cast<double>(size.bytes) * size.rounds / microseconds_since(begin) * 1e-3,
            "GB/s");
    }
  }
}

void run(const Task& task, int worker, const Pipe& pipe, const Hosts& hosts) {
  task.wire == "tcp" ? run_plain(task, worker, pipe, hosts) : run_transport(task, worker, pipe, hosts);
}

bool succeeds(const std::string& command) { return std::system((command + " 2>/dev/null").c_str()) == 0; }

// The other process moves into a network of its own, with a cable between the two.
Hosts make_hosts(int worker, const Pipe& pipe) {
  const Hosts apart{{"198.18.255.1", "198.18.255.2"}};
  bool ready = worker == 0 || ::unshare(CLONE_NEWNET) == 0;
  const std::string other = pipe.exchange(ready ? std::to_string(::getpid()) : "none");
  if (worker == 0) {
    const std::string near = "evb" + other;
    ready = other != "none" && succeeds("ip link add " + near + " type veth peer name far0 netns " + other) &&
            succeeds("ip address add " + apart.addresses[0] + "/30 dev " + near) &&
            succeeds("ip link set " + near + " up");
  }
  ready = pipe.exchange(ready ? "yes" : "no") == "yes" && ready;
  if (worker == 1) {
    ready = ready && succeeds("ip address add " + apart.addresses[1] + "/30 dev far0") &&
            succeeds("ip link set far0 up && ip link set lo up");
  }
  ready = pipe.exchange(ready ? "yes" : "no") == "yes" && ready;
  return ready ? apart : Hosts{};
}

}  // namespace
}  // namespace everstep::trainer

int main(int count, char** words) {
  using namespace everstep::trainer;
  const std::vector<std::string> arguments(words + 1, words + count);
  if (arguments.empty() || (arguments[0] != "unix" && arguments[0] != "tls" && arguments[0] != "tcp")) {
    std::fputs("usage: transport_bench unix|tls|tcp [latency] [stream] [beside]\n", stderr);
    return 64;
  }
  const Task task{arguments[0], {arguments.begin() + 1, arguments.end()}};
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends.data()) != 0) return 1;
  const pid_t peer = ::fork();
  const int worker = peer == 0 ? 1 : 0;
  const Pipe pipe{ends[worker]};
  const Hosts hosts = task.wire == "unix" ? Hosts{} : make_hosts(worker, pipe);
  if (worker == 0) std::printf("# %s at %s\n", task.wire.c_str(), hosts.addresses[0].c_str());
  run(task, worker, pipe, hosts);
  if (worker == 1) ::_exit(0);
  int status = 0;
  ::waitpid(peer, &status, 0);
  return status == 0 ? 0 : 1;
}
