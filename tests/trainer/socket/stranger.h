#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/trainer/socket/wires.h"
#include "trainer/socket/byte_stream.h"
#include "trainer/socket/file_descriptor.h"
#include "trainer/socket/handshake_message.h"
#include "trainer/socket/log_hook.h"
#include "trainer/socket/tls/tls_context.h"

// Callers that say whatever a test wants. What they wait for comes within kSoon, on the busiest machine, or never.
namespace everstep::trainer {

inline constexpr std::chrono::seconds kSoon{30};

// Connects like somebody who knows nothing but the address. Stays connected as long as the result lives.
FileDescriptor call(const std::string& address);

// The same from another IPv4 address of this machine; it may still be connecting.
FileDescriptor call_from(const std::string& host, const std::string& address);

void say(const FileDescriptor& socket, std::string_view bytes);

// All that comes before the other side hangs up, or `most` bytes.
std::string hear(const FileDescriptor& socket, std::size_t most = 100'000);

// Whether the other side hangs up, whatever it says before.
bool hangs_up(const FileDescriptor& socket);

// Whether the other side has neither said anything nor hung up.
bool is_quiet(const FileDescriptor& socket);

// Until it is possible or never will be.
bool negotiate(ByteStream& stream);
void write_all(ByteStream& stream, std::string_view bytes);

// A caller that has what the wire asks for, or as much of it as a test leaves it: over TLS a key that is made of this
// secret and lineage, or a certificate.
class Stranger {
 public:
  Stranger(const std::string& address, Wire wire, const std::string& secret = kTestSecret,
           std::uint64_t lineage = kTestLineage);
  // Over a socket that calls this address.
  Stranger(FileDescriptor socket, const std::string& address, Wire wire, const std::string& secret = kTestSecret,
           std::uint64_t lineage = kTestLineage);
  bool is_connected() const { return is_connected_; }
  ByteStream& stream() { return *stream_; }
  void hang_up() { stream_.reset(); }

  void say(std::string_view bytes) { write_all(*stream_, bytes); }
  std::string hear(std::size_t most = 100'000);
  std::optional<Reply> hear_reply();
  bool is_quiet();  // takes a byte if there is one

 private:
  std::unique_ptr<TlsContext> tls_;
  std::unique_ptr<ByteStream> stream_;
  bool is_connected_ = false;
};

std::optional<Reply> understood(const std::string& reply);

// What worker 1 of a test group says first when it calls worker 0.
CallerHello hello_of_worker_1(std::int64_t generation = 1, std::uint32_t nonce = 0, const Purpose& purpose = {});

std::string proof_text(const Proof& proof);

// Goes all the way as the caller; the last reply: a welcome, if nothing is wrong.
std::optional<Reply> introduce(Stranger& stranger, const HandshakeSeal& seal, const CallerHello& hello,
                               const HandshakeNonce& ticket = {});

class LogLines {
 public:
  LogHook hook();
  std::vector<std::string> lines();
  std::ptrdiff_t count(const std::string& text);

  // Whether a line with that text comes: service threads log when they get to it.
  bool comes(const std::string& text);

 private:
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

// Waits for what happens soon without a signal.
template <typename Condition>
bool comes_true(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + kSoon;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace everstep::trainer
