// Usage: transport
//
// Measures the UCX transport between two processes of this machine: for frames of several sizes the time of a round
// trip, the bandwidth, and what one frame costs the thread that computes (send, post_receive and wait, checksums
// included).
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trainer/ucx/ucx_transport.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;

struct FrameSize {
  std::size_t bytes;
  int rounds;
};
constexpr FrameSize kSizes[] = {{64, 5000},        {4096, 5000},   {64 << 10, 2000},
                                {512 << 10, 1000}, {1 << 20, 500}, {4 << 20, 200}};

double seconds(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// An address is short, so one packet carries it.
std::string exchange(int pipe, const std::string& mine) {
  EVERSTEP_CHECK(::send(pipe, mine.data(), mine.size(), MSG_NOSIGNAL) > 0, "the pipe broke");
  std::string theirs(65536, '\0');
  const ssize_t size = ::recv(pipe, theirs.data(), theirs.size(), 0);
  EVERSTEP_CHECK(size > 0, "the pipe broke");
  theirs.resize(static_cast<std::size_t>(size));
  return theirs;
}

std::unique_ptr<Transport> connect(UcxListener& listener, int worker, int pipe) {
  std::vector<std::string> addresses{listener.address(), exchange(pipe, listener.address())};
  if (worker == 1) std::swap(addresses[0], addresses[1]);
  const UcxGroup group{0, {}, 0, worker, {{WorkerId{{0, 1}}, addresses[0]}, {WorkerId{{0, 2}}, addresses[1]}}};
  return std::move(listener.connect(group, 10s).connection.value().transport);
}

// Worker 0 sends first, worker 1 sends it back. The receive of the next frame is always posted ahead.
void bounce(Transport& transport, const FrameSize& size) {
  const int peer = 1 - transport.worker();
  FrameHeader header;
  header.length = size.bytes;
  const Buffer out = allocate_zeroed(size.bytes);
  const Buffer in = allocate_zeroed(size.bytes);
  const double begin = seconds(CLOCK_MONOTONIC);
  const double own_begin = seconds(CLOCK_THREAD_CPUTIME_ID);
  for (int round = 0; round < size.rounds; ++round) {
    header.window = round;
    const ReceiveId receive = transport.post_receive(peer, Channel::kTensors, header, in);
    if (transport.worker() == 0) transport.send(peer, Channel::kTensors, header, out);
    const Result<FrameHeader> received = transport.wait(receive, 10s);
    EVERSTEP_CHECK(received.ok(), received.error().line());
    if (transport.worker() == 1) transport.send(peer, Channel::kTensors, header, out);
  }
  const double own = seconds(CLOCK_THREAD_CPUTIME_ID) - own_begin;
  const double elapsed = seconds(CLOCK_MONOTONIC) - begin;
  if (transport.worker() == 0) {
    const double round_trip = elapsed / size.rounds;
    std::printf("%10zu %14.1f %10.2f %22.1f\n", size.bytes, round_trip * 1e6,
                2 * static_cast<double>(size.bytes) / round_trip * 1e-9, own / size.rounds * 1e6);
  }
}

int run(int worker, int pipe) {
  const auto listener = UcxListener::listen({}).value();
  const std::unique_ptr<Transport> transport = connect(*listener, worker, pipe);
  bounce(*transport, {1 << 20, 20});  // connections are made by the first frames
  for (const FrameSize& size : kSizes) bounce(*transport, size);
  return transport->close(10s) ? 0 : 1;
}

}  // namespace
}  // namespace everstep::trainer

int main() {
  std::array<int, 2> pipes{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pipes.data()) != 0) return 1;
  const pid_t peer = ::fork();
  if (peer == 0) ::_exit(everstep::trainer::run(1, pipes[1]));
  std::printf("%10s %14s %10s %22s\n", "bytes", "round trip us", "GB/s", "compute thread us/frame");
  std::fflush(stdout);
  const int status = everstep::trainer::run(0, pipes[0]);
  int peer_status = 0;
  ::waitpid(peer, &peer_status, 0);
  return status + (peer_status != 0 ? 1 : 0);
}
