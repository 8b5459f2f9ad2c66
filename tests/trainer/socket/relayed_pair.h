#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "tests/temporary_directory.h"
#include "tests/trainer/socket/loopback_workers.h"
#include "tests/trainer/socket/relay.h"
#include "tests/trainer/socket/stranger.h"
#include "tests/trainer/socket/wires.h"
#include "trainer/socket/dialing.h"
#include "trainer/socket/peer_address.h"
#include "trainer/socket/unix_sockets.h"

namespace everstep::trainer {

// A worker that peers know by an address where a relay can stand: with TLS that of another loopback address, since a
// key is made for the address that is called.
class RelayedWorker {
 public:
  explicit RelayedWorker(Wire wire, LogHook log = {}) {
    SocketOptions options = options_of(wire, std::move(log));
    if (options.tcp) options.tcp->advertise = kRelayHost;
    worker.emplace(1, options);
    own_ = known_ = parse_peer_address(worker->addresses[0]).value();
    if (wire == Wire::kUnix) {
      socket_.emplace(UnixListener::listen(directory_.path(), "relay").value());
      known_.local->path = socket_->path();
    } else {
      own_.tcp->host = "127.0.0.1";
    }
  }

  // What peers call.
  std::string address() const { return to_text(known_); }
  PeerConnector& connector() { return *worker->connectors[0]; }

  // Once.
  std::unique_ptr<Relay> relay(Relay::Meddler meddler = {}) { return relay_to(own_, std::move(meddler)); }
  std::unique_ptr<Relay> relay_to(const PeerAddress& target, Relay::Meddler meddler = {}) {
    const auto dial = [target] {
      return target.local ? call_unix(target.local->path).value() : call_tcp(*target.tcp).value();
    };
    return std::make_unique<Relay>(entrance(), dial, std::move(meddler));
  }
  FileDescriptor entrance() {
    if (socket_) return socket_->take_socket();
    return std::move(listen_on_tcp({kRelayHost, known_.tcp->port, 0}).value().socket);
  }
  const PeerAddress& own_address() const { return own_; }

  std::optional<LoopbackWorkers> worker;

 private:
  static constexpr const char* kRelayHost = "127.0.0.2";

  TemporaryDirectory directory_;
  PeerAddress own_;
  PeerAddress known_;
  std::optional<UnixListener> socket_;
};

// Worker 0, which is called through whatever stands at its address, and worker 1, which calls it. Each try has another
// nonce.
class RelayedPair {
 public:
  explicit RelayedPair(Wire wire, LogHook called_log = {}, LogHook caller_log = {})
      : called(wire, std::move(called_log)), caller(1, options_of(wire, std::move(caller_log))) {}

  struct Outcome {
    ConnectOutcome called;
    ConnectOutcome caller;

    bool is_connected() const { return called.connection.ok() && caller.connection.ok(); }
    bool has_failed() const { return !called.connection && !caller.connection; }
  };

  // The caller may take that long; the called one is told when the caller has failed.
  Outcome connect(std::chrono::milliseconds timeout = kSoon) {
    ++nonce_;
    const std::vector<std::string> addresses{called.address(), caller.addresses[0]};
    ConnectOutcome first{Error{}, {}};
    std::thread connecting([&] { first = called.connector().connect(test_roster(0, addresses, 1, nonce_), kSoon); });
    ConnectOutcome second = caller.connectors[0]->connect(test_roster(1, addresses, 1, nonce_), timeout);
    if (!second.connection) called.connector().give_up(Generation{1}, nonce_);
    connecting.join();
    return {std::move(first), std::move(second)};
  }

  RelayedWorker called;
  LoopbackWorkers caller;

 private:
  std::uint32_t nonce_ = 0;
};

// A frame that goes from the one to the other; what came of it.
inline Result<std::string> deliver(const RelayedPair::Outcome& pair, const std::string& payload,
                                   std::chrono::milliseconds timeout = kSoon) {
  FrameHeader header;
  header.length = payload.size();
  const Buffer sent = allocate_zeroed(payload.size());
  std::copy(payload.begin(), payload.end(), sent.as<char>().begin());
  const Buffer into = allocate_zeroed(payload.size());
  Transport& receiver = *pair.called.connection->transport;
  const ReceiveId receive = receiver.post_receive(1, Channel::kTensors, header, into);
  pair.caller.connection->transport->send(0, Channel::kTensors, header, sent);
  const Result<FrameHeader> received = receiver.wait(receive, timeout);
  if (!received) return received.error();
  return std::string(into.as<const char>().begin(), into.as<const char>().end());
}

}  // namespace everstep::trainer
