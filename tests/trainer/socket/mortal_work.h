#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "trainer/wire/peer_connector.h"
#include "trainer/wire/transport.h"

// What workers do in tests of their deaths.
namespace everstep::trainer {

// One clock for all processes of a machine.
inline std::int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline FrameHeader header(std::size_t length, std::int64_t window = 1) {
  FrameHeader header;
  header.window = window;
  header.length = length;
  return header;
}

inline Result<FrameHeader> receive(Transport& transport, int from, std::size_t length,
                                   std::chrono::milliseconds timeout) {
  return transport.wait(transport.post_receive(from, Channel::kTensors, header(length), allocate_zeroed(length)),
                        timeout);
}

// The last worker does nothing, and the others wait for it: when they gave it up, and why.
inline std::string wait_for_the_last(PeerConnection& connection, const std::function<void()>& ready) {
  Transport& transport = *connection.transport;
  const int last = transport.workers() - 1;
  ready();
  if (transport.worker() == last) std::this_thread::sleep_for(std::chrono::hours(1));
  const Result<FrameHeader> received = receive(transport, last, 8, std::chrono::seconds(30));
  return std::to_string(now_us()) + " " + received.error().line();
}

}  // namespace everstep::trainer
