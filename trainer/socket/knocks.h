#pragma once

#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include <poll.h>

#include "trainer/socket/file_descriptor.h"
#include "trainer/socket/sockets.h"

namespace everstep::trainer {

// Nobody calls the last worker, and one that died before it could call would be waited for. A call without a word finds
// out whether there is still somebody at its address.
class Knocks {
 public:
  void add(int worker, FileDescriptor call) { calls_.push_back({worker, std::move(call)}); }

  // A worker at whose address nobody listens, if that turned out by now.
  std::optional<int> first_without_answer() {
    for (Call& call : calls_) {
      pollfd decided{call.socket.get(), POLLOUT, 0};
      if (::poll(&decided, 1, 0) <= 0) continue;
      if (call_error(call.socket.get()) == ECONNREFUSED) return call.worker;
      call.socket.reset();
    }
    std::erase_if(calls_, [](const Call& call) { return !call.socket.is_open(); });
    return std::nullopt;
  }

 private:
  struct Call {
    int worker = 0;
    FileDescriptor socket;
  };

  std::vector<Call> calls_;
};

}  // namespace everstep::trainer
