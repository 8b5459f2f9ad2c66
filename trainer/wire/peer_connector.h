#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "trainer/wire/lifeline_news.h"
#include "trainer/wire/transport.h"

namespace everstep::trainer {

struct PeerMember {
  WorkerId id;
  std::string address;  // its PeerConnector::address()
  std::string name{};   // for people; empty: its place
};

// Who connects in one try to form one generation. All members are given the same, but for `worker`.
struct PeerRoster {
  std::uint64_t lineage = 0;
  Generation generation{};
  std::uint32_t nonce = 0;  // tells tries of one generation apart
  int worker = 0;           // this one's place in `members`
  std::vector<PeerMember> members;
};

struct PeerConnection {
  std::unique_ptr<Transport> transport;
  std::shared_ptr<LifelineNews> news;  // may outlive the transport
};

struct ConnectOutcome {
  Result<PeerConnection> connection;
  std::optional<LostPeer> lost{};  // the member because of which it failed, where there is one
};

// Where peers call a worker, from its start to its end, over all generations. Calls of generations and tries that are
// over are turned away and counted; those of newer ones wait until this worker connects too (a bounded
// number of them, for a bounded time). Silent or noisy strangers hold up nobody.
class PeerConnector {
 public:
  virtual ~PeerConnector() = default;

  // What peers need to call this worker; stays the same. Text without line breaks that only connectors read.
  virtual const std::string& address() const = 0;

  // Returns when every member is connected and has proved who it is. May be called from any thread, while older
  // transports are in use; each try once. Failures: kUnavailable a member is gone or gave this try up ·
  // kDeadlineExceeded a member is silent · kStaleGeneration a member has another generation or try, or is another
  // incarnation · kInvalidArgument a member has another secret, or cannot be called from here at all: trying again is
  // useless · kCancelled by give_up.
  virtual ConnectOutcome connect(const PeerRoster& roster, std::chrono::milliseconds timeout) = 0;

  // Ends the connect() of this try, from any thread, whether it has begun or not. A transport that it returned already
  // is not touched.
  virtual void give_up(Generation generation, std::uint32_t nonce) = 0;

  // Calls of generations and tries that were over.
  virtual std::int64_t fenced() const = 0;
};

}  // namespace everstep::trainer
