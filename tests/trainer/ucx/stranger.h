#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/ucx/lifeline/file_descriptor.h"
#include "trainer/ucx/lifeline/handshake_message.h"
#include "trainer/ucx/lifeline/lifeline_socket.h"

namespace everstep::trainer {

// Connects to a lifeline port like a stranger would. Stays connected as long as the result lives.
FileDescriptor call(const std::string& address);

void say(const FileDescriptor& socket, std::string_view bytes);

// All that comes before the other side hangs up, or `most` bytes. Waits 10 s at most.
std::string hear(const FileDescriptor& socket, std::size_t most = 100'000);

// One whole reply, and what it means.
std::string hear_reply(const FileDescriptor& socket);
std::optional<Reply> understood(const std::string& reply);

// Whether the other side has neither said anything nor hung up.
bool is_quiet(const FileDescriptor& socket);

HandshakeSeal seal_with(const std::string& key);

// What worker 1 of a test group says first when it calls worker 0.
CallerHello hello_of_worker_1(std::int64_t generation = 1, std::uint32_t nonce = 0);
std::string proof_text(const Proof& proof);

class LogLines {
 public:
  LogHook hook();
  std::vector<std::string> lines();

  // Whether a line with that text comes within 10 s: service threads log when they get to it.
  bool comes(const std::string& text);

 private:
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

}  // namespace everstep::trainer
