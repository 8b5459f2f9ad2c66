#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "elastic/records.h"

namespace everstep::launcher {

// What tells whether a worker and its peers can reach each other, before any of them tries.
struct Reach {
  std::vector<std::string> etcd;  // URLs
  std::string host;               // this worker's
  std::string address;            // where it tells peers to call: "127.0.0.1:4711"
};

// kInvalidArgument if this worker and a member on another host can never connect: etcd is on another host, so that
// hosts are what they seem, and one of the two can be called on its own host only.
Status check_reach(const Reach& self, const std::vector<elastic::MemberRecord>& members);

// What to say at once if only workers of this host can call this one though etcd is on another; nothing: all is well.
std::optional<std::string> reach_warning(const Reach& self);

}  // namespace everstep::launcher
