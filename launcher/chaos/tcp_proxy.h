#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "base/result.h"

namespace everstep::launcher::chaos {

// Stands before the port at which a worker is called, under another address of the loopback device, and hands on what
// comes, in both directions. That is the handshake of each generation and the lifeline after it; UCX moves tensors over
// connections of its own, which do not come by here.
class TcpProxy {
 public:
  enum class Mode : std::uint8_t {
    kPass,
    kHold,     // takes calls and bytes, and hands nothing on: a peer that is half open
    kCorrupt,  // one bit of every piece is wrong
    kDelay,    // every piece waits for 200 ms
  };

  // From kAddress:port to 127.0.0.1:port.
  static Result<std::unique_ptr<TcpProxy>> start(int port);
  static constexpr const char* kAddress = "127.0.0.2";

  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;
  ~TcpProxy();

  void set(Mode mode) { mode_ = mode; }

 private:
  TcpProxy(int listener, int port);

  void run();

  const int listener_;
  const int port_;
  std::atomic<Mode> mode_{Mode::kPass};
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

}  // namespace everstep::launcher::chaos
