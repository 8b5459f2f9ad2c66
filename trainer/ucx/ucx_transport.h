#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "trainer/transport.h"
#include "trainer/ucx/lifeline/handshake_message.h"
#include "trainer/ucx/lifeline/lifeline_news.h"
#include "trainer/ucx/lifeline/lifeline_socket.h"

namespace everstep::trainer {

struct UcxOptions {
  std::string bind = "127.0.0.1";  // an IPv4 address of this machine; nothing listens elsewhere
  std::uint16_t first_port = 0;    // the first free one of first_port … last_port is taken; 0: any
  std::uint16_t last_port = 0;     // 0: first_port is the only one
  std::string advertise{};         // the IPv4 address that peers call; empty: `bind`
  HandshakeSeal seal{};            // with the data plane's key, the same for all workers; empty: plain, unkeyed
  LogHook log{};                   // may be empty
};

struct UcxMember {
  WorkerId id;
  std::string address;  // its UcxListener::address()
  std::string name{};   // for people; empty: its place
};

// Who connects in one try to form one generation. All members are given the same, but for `worker`.
struct UcxGroup {
  std::uint64_t lineage = 0;
  Generation generation{};
  std::uint32_t nonce = 0;  // tells tries of one generation apart
  int worker = 0;           // this one's place in `members`
  std::vector<UcxMember> members;
};

struct UcxConnection {
  std::unique_ptr<Transport> transport;
  std::shared_ptr<LifelineNews> news;  // may outlive the transport
};

struct UcxOutcome {
  Result<UcxConnection> connection;
  std::optional<LostPeer> lost{};  // the member because of which it failed, where there is one
};

// Where peers call a worker, from its start to its end, over all generations. Calls of generations and tries that are
// over are turned away and counted; those of newer ones wait until this worker connects too (a bounded
// number of them, for a bounded time). Silent or noisy strangers hold up nobody.
class UcxListener {
 public:
  // kInvalidArgument if no port is free or the address is not this machine's.
  static Result<std::unique_ptr<UcxListener>> listen(const UcxOptions& options);

  virtual ~UcxListener() = default;

  // "10.0.0.7:4711"; stays the same.
  virtual const std::string& address() const = 0;

  // Returns when every member is connected and has proved who it is. May be called from any thread, while older
  // transports are in use; each try once. Failures: kUnavailable a member is gone or gave this try up ·
  // kDeadlineExceeded a member is silent · kStaleGeneration a member has another generation or try, or is another
  // incarnation · kInvalidArgument a member has another secret, or an address is none: trying again is useless ·
  // kCancelled by give_up.
  virtual UcxOutcome connect(const UcxGroup& group, std::chrono::milliseconds timeout) = 0;

  // Ends the connect() of this try, from any thread, whether it has begun or not. A transport that it returned already
  // is not touched.
  virtual void give_up(Generation generation, std::uint32_t nonce) = 0;

  // Calls of generations and tries that were over.
  virtual std::int64_t fenced() const = 0;
};

}  // namespace everstep::trainer
