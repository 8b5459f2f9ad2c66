#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "trainer/ucx/file_descriptor.h"

namespace everstep::trainer {

// Called with one line in logfmt, possibly from a service thread.
using LogHook = std::function<void(const std::string& line)>;

// Who a worker is, as said on both sides before a lifeline counts.
struct LifelineIdentity {
  std::uint64_t lineage = 0;
  Generation generation{};
  int worker = 0;
};

// Where a worker's lifelines are accepted.
struct LifelineAddress {
  std::string host;  // an IPv4 address in digits
  std::uint16_t port = 0;
};

// One idle TCP connection to every peer. Nothing travels on it but a goodbye, so a connection that closes without one
// means that the peer's process is gone, and the kernel tells at once. (UCX itself does not: its error handling mode
// crashes survivors.) Whoever learns of a death tells the others who it was, since a survivor that leaves because of it
// may be missed first. Not thread-safe, except that descriptor() may be polled anywhere.
class Lifelines {
 public:
  // `sockets[i]` leads to worker i; the own place is empty.
  explicit Lifelines(std::vector<FileDescriptor> sockets);

  // Readable when poll() has something to find.
  int descriptor() const { return events_.get(); }

  // Takes notice of goodbyes and deaths without blocking. kUnavailable names the worker that died.
  Status poll();

  // Tells every peer that the end of this process is no death.
  void say_goodbye();

  bool all_said_goodbye() const;

  // A worker that has not said goodbye, or −1.
  int first_still_here() const;

 private:
  static constexpr std::size_t kMessageBytes = 3;  // what kind, and which worker it is about

  struct Peer {
    FileDescriptor socket;
    bool said_goodbye = false;
    std::array<std::byte, kMessageBytes> inbox{};
    std::size_t received = 0;
  };

  Status read(int worker);
  Status heard(int worker);
  Error spread_death(int worker);
  void tell_all(std::byte kind, int about);

  std::vector<Peer> peers_;
  FileDescriptor events_;
};

// The listening end, before the peers are known.
class LifelineListener {
 public:
  // Port 0 means any. kInvalidArgument names host and port if they cannot be had.
  static Result<LifelineListener> listen(const LifelineAddress& address, const LifelineIdentity& identity, LogHook log);

  const LifelineAddress& address() const { return address_; }

  // Connects to the workers before this one and accepts those after it; `addresses[i]` is worker i's. Connections that
  // do not introduce themselves as one of these peers are closed, logged and forgotten. Fails with kUnavailable as soon
  // as a peer is gone, kStaleGeneration if one belongs to another run, kDeadlineExceeded naming a worker that is
  // missing. The port is closed afterwards.
  Result<Lifelines> connect(const std::vector<LifelineAddress>& addresses, std::chrono::milliseconds timeout) &&;

 private:
  LifelineListener(FileDescriptor socket, LifelineAddress address, LifelineIdentity identity, LogHook log);

  FileDescriptor socket_;
  LifelineAddress address_;
  LifelineIdentity identity_;
  LogHook log_;
};

}  // namespace everstep::trainer
