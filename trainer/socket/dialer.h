#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "trainer/socket/byte_stream.h"
#include "trainer/socket/file_descriptor.h"
#include "trainer/socket/peer_address.h"
#include "trainer/socket/tls/tls_context.h"

namespace everstep::trainer {

// Calls peers the best way there is: within this host over AF_UNIX, else over TLS.
class Dialer {
 public:
  struct Ways {
    std::string boot{};         // of this host; empty: nobody is called over AF_UNIX
    TlsContext* tls = nullptr;  // nullptr: nobody is called over TCP
    std::uint64_t lineage = 0;
  };

  explicit Dialer(Ways ways) : ways_(std::move(ways)) {}

  // The stream may still be connecting: call_error() of its descriptor says how that ended once it is writable. No
  // stream: too many callers wait there already; call again. kUnavailable nobody is there · kDeadlineExceeded nobody
  // knows · kInvalidArgument there is no way, or somebody else answers.
  Result<std::unique_ptr<ByteStream>> dial(const PeerAddress& address) const;

  // Calls without a word, only to see whether somebody is there. The same errors.
  Result<FileDescriptor> knock(const PeerAddress& address) const;

 private:
  struct Call {
    FileDescriptor socket;
    bool is_local = false;
  };
  Result<Call> begin(const PeerAddress& address) const;

  Ways ways_;
};

}  // namespace everstep::trainer
