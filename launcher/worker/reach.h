#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "elastic/keys.h"
#include "elastic/kv_store.h"
#include "elastic/records.h"
#include "trainer/socket/peer_address.h"

namespace everstep::launcher {

// What tells whether a worker and its peers can reach each other, before any of them tries.
struct Reach {
  std::vector<std::string> etcd;  // URLs
  std::string host;               // this worker's
  // Where it is going to listen: its port and the name of its socket do not matter.
  trainer::PeerAddress address;
  // Whether it can open that socket of this host.
  std::function<bool(const std::string& path)> can_open;
};

// Why this worker and a member cannot connect.
struct Obstacle {
  Error error;              // kInvalidArgument
  bool may_vanish = false;  // if the member has just died: then it soon is no member any more
};

// Nothing: nothing speaks against it. Workers of one host need a socket there that both can open. All others need
// ports, and those of the loopback device will not do: not if etcd is on another host, so that hosts are what they
// seem.
std::optional<Obstacle> find_obstacle(const Reach& self, const std::vector<elastic::MemberRecord>& members);

// What to say at once if only workers of this host can call this one though etcd is on another; nothing: all is well.
std::optional<std::string> reach_warning(const Reach& self);

// Looks for obstacles among the members that a store tells of. One that may vanish is given a lease's time.
Status check_reach(const Reach& self, elastic::KvStore& store, const elastic::Keys& keys,
                   std::chrono::seconds lease_ttl);

// Whether a process of this user has a socket there, or had when it died.
bool is_own_socket(const std::string& path);

}  // namespace everstep::launcher
