#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "base/result.h"

namespace everstep::launcher::chaos {

// Stands before the port at which a worker is called, under another address of the loopback device, and hands on what
// comes, in both directions and in order: all that workers say who call this one, that is handshakes, lifelines and
// channels. A side that takes nothing holds the other one back, as without the proxy, and the end of each direction is
// handed on for itself.
class TcpProxy {
 public:
  enum class Mode : std::uint8_t {
    kPass,
    kHold,     // takes calls and bytes, and hands nothing on: a peer that is half open
    kCorrupt,  // one bit of every piece is wrong
    kDelay,    // every piece waits for 200 ms, also behind those before it
  };

  // From kAddress:port to 127.0.0.1:port.
  static Result<std::unique_ptr<TcpProxy>> start(int port);
  static constexpr const char* kAddress = "127.0.0.2";

  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;
  ~TcpProxy();

  // On return nothing is handed on any more in the mode before.
  void set(Mode mode);

 private:
  TcpProxy(int listener, int port);

  void run();

  const int listener_;
  const int port_;
  std::atomic<Mode> mode_{Mode::kPass};
  std::atomic<Mode> in_force_{Mode::kPass};  // what the thread goes by
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

}  // namespace everstep::launcher::chaos
