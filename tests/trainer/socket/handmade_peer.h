#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "tests/temporary_directory.h"
#include "tests/trainer/socket/stranger.h"
#include "tests/trainer/socket/wires.h"
#include "trainer/socket/boot_id.h"
#include "trainer/socket/call_port.h"
#include "trainer/socket/closing_streams.h"
#include "trainer/socket/dialing.h"
#include "trainer/socket/handshake.h"
#include "trainer/socket/unix_sockets.h"

namespace everstep::trainer {

// A real worker 0, and a worker 1 that has gone through the real handshake with it and can say anything on any of its
// connections.
class HandmadePeer {
 public:
  explicit HandmadePeer(Wire wire, LogHook log = {}) : victim_(1, options_of(wire, std::move(log))) {
    const PeerAddress own = listen(wire);
    const std::vector<std::string> addresses{victim_.addresses[0], to_text(own)};
    if (wire != Wire::kUnix) tls_ = TlsContext::make(seal_of(wire), options_of(wire).tcp->files).value();
    const Dialer dialer({boot_id(), tls_.get(), kTestLineage});
    HandshakeRequest mine{1, {}, dialer, closing_, seal_of(wire), {}};
    for (int worker = 0; worker < 2; ++worker) {
      mine.members.push_back({test_worker_id(worker), parse_peer_address(addresses[worker]).value()});
    }
    CallPort port({}, {});
    const auto inbox = port.open({kTestLineage, Generation{1}, 0}).value();
    std::thread connecting([&] {
      connection = std::move(victim_.connectors[0]->connect(test_roster(0, addresses), kSoon).connection).value();
    });
    streams = std::move(std::move(shake_hands(*inbox, mine, kSoon).peers).value()[0]);
    connecting.join();
  }

  ByteStream& channel(Channel channel) { return *streams.channels[static_cast<std::size_t>(channel)]; }

  PeerConnection connection;  // the real worker's
  PeerStreams streams;        // the other end of it

 private:
  // Nobody answers there; it is enough that somebody could.
  PeerAddress listen(Wire wire) {
    if (wire == Wire::kUnix) {
      unix_.emplace(UnixListener::listen(directory_.path(), "handmade").value());
      return {{}, UnixAddress{boot_id(), unix_->path()}};
    }
    tcp_ = listen_on_tcp({"127.0.0.1", 0, 0}).value();
    return {TcpAddress{"127.0.0.1", tcp_.port}, {}};
  }

  TemporaryDirectory directory_;
  LoopbackWorkers victim_;
  ClosingStreams closing_;
  std::optional<UnixListener> unix_;
  TcpListener tcp_;
  std::unique_ptr<TlsContext> tls_;
};

}  // namespace everstep::trainer
