#include "launcher/elastic/reach.h"

#include <algorithm>

#include "elastic/etcd_endpoint.h"

namespace everstep::launcher {
namespace {

constexpr const char* kHint =
    "start it with --bind=ADDRESS, an address of its host that the others reach, and "
    "--advertise=ADDRESS if they know it by another";

// IPv4 addresses are all that a worker listens on.
bool is_loopback(const std::string& address) { return address.starts_with("127."); }

bool is_on_this_host(const std::string& url) {
  const auto endpoint = elastic::parse_endpoint(url, true);
  return endpoint && elastic::is_local(*endpoint);
}

bool uses_etcd_elsewhere(const Reach& self) { return std::ranges::none_of(self.etcd, is_on_this_host); }

}  // namespace

Status check_reach(const Reach& self, const std::vector<elastic::MemberRecord>& members) {
  if (!uses_etcd_elsewhere(self)) return {};
  for (const elastic::MemberRecord& member : members) {
    if (member.host == self.host) continue;
    const std::string other = member.name + " on host " + member.host;
    if (is_loopback(self.address)) {
      return invalid_argument("this worker listens at " + self.address + ", where " + other + " cannot reach it",
                              kHint);
    }
    if (is_loopback(member.address)) {
      return invalid_argument(other + " listens at " + member.address + ", where this worker cannot reach it", kHint);
    }
  }
  return {};
}

std::optional<std::string> reach_warning(const Reach& self) {
  if (!uses_etcd_elsewhere(self) || !is_loopback(self.address)) return std::nullopt;
  return "only workers on this host can connect to " + self.address +
         ", but etcd is on another host (hint: if workers " + "on other hosts take part, " + kHint + ")";
}

}  // namespace everstep::launcher
