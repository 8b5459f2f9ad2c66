#include "launcher/worker/reach.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include "elastic/etcd_endpoint.h"
#include "launcher/job/job_secret.h"
#include "launcher/job/patient_store.h"

namespace everstep::launcher {
namespace {

using trainer::PeerAddress;

constexpr const char* kAddressHint =
    "start it with --bind=ADDRESS, an address of its host that the others reach, and "
    "--advertise=ADDRESS if they know it by another";

std::string secret_hint() { return std::string("start the job with a secret: ") + kMakeSecret; }

bool is_loopback(const trainer::TcpAddress& address) {
  return address.host.starts_with("127.") || address.host == "::1" || address.host.starts_with("::ffff:127.");
}

bool is_on_this_host(const std::string& url) {
  const auto endpoint = elastic::parse_endpoint(url, true);
  return endpoint && elastic::is_local(*endpoint);
}

bool uses_etcd_elsewhere(const Reach& self) { return std::ranges::none_of(self.etcd, is_on_this_host); }

// The same boot of the same host. It may have containers that do not share files.
bool shares_host(const PeerAddress& one, const PeerAddress& other) {
  return one.local && other.local && one.local->boot == other.local->boot;
}

bool shares_files(const Reach& self, const PeerAddress& member) {
  return shares_host(self.address, member) && self.can_open(member.local->path);
}

std::string name_of(const elastic::MemberRecord& member) { return member.name + " on host " + member.host; }

Obstacle without_ports(const Reach& self, const elastic::MemberRecord& member, const PeerAddress& address) {
  if (shares_host(self.address, address)) {
    return {invalid_argument("this worker cannot open the socket of " + name_of(member) + ", " + address.local->path +
                                 ": another user or container has it",
                             secret_hint()),
            true};
  }
  return {invalid_argument(
      "this worker and " + name_of(member) + " cannot connect: without a secret workers talk within one host only",
      secret_hint())};
}

std::optional<Obstacle> obstacle_to(const Reach& self, const elastic::MemberRecord& member) {
  const auto address = trainer::parse_peer_address(member.address);
  if (!address || shares_files(self, *address)) return std::nullopt;
  if (!self.address.tcp || !address->tcp) return without_ports(self, member, *address);
  if (member.host == self.host || !uses_etcd_elsewhere(self)) return std::nullopt;
  if (is_loopback(*self.address.tcp)) {
    return Obstacle{invalid_argument(
        "this worker listens at " + self.address.tcp->host + ", where " + name_of(member) + " cannot reach it",
        kAddressHint)};
  }
  if (!is_loopback(*address->tcp)) return std::nullopt;
  return Obstacle{invalid_argument(
      name_of(member) + " listens at " + to_text(*address->tcp) + ", where this worker cannot reach it", kAddressHint)};
}

Result<std::vector<elastic::MemberRecord>> read_members(elastic::KvStore& store, const elastic::Keys& keys) {
  const auto found = transact_patiently(store, {{}, {elastic::list(keys.members())}, {}});
  if (!found) return found.error();
  std::vector<elastic::MemberRecord> members;
  for (const elastic::KeyValue& item : found->reads.at(0)) {
    if (auto member = elastic::parse_member(item.value)) members.push_back(std::move(member).value());
  }
  return members;
}

}  // namespace

std::optional<Obstacle> find_obstacle(const Reach& self, const std::vector<elastic::MemberRecord>& members) {
  std::optional<Obstacle> found;
  for (const elastic::MemberRecord& member : members) {
    auto obstacle = obstacle_to(self, member);
    if (obstacle && (!found || !obstacle->may_vanish)) found = std::move(obstacle);
  }
  return found;
}

std::optional<std::string> reach_warning(const Reach& self) {
  if (!uses_etcd_elsewhere(self)) return std::nullopt;
  constexpr const char* kIf = " (hint: if workers on other hosts take part, ";
  if (!self.address.tcp) {
    return "only workers on this host can connect to this one, since the job has no secret, but etcd is on another "
           "host" +
           (kIf + secret_hint()) + ")";
  }
  if (!is_loopback(*self.address.tcp)) return std::nullopt;
  return "only workers on this host can connect to " + self.address.tcp->host + ", but etcd is on another host" + kIf +
         kAddressHint + ")";
}

Status check_reach(const Reach& self, elastic::KvStore& store, const elastic::Keys& keys,
                   std::chrono::seconds lease_ttl) {
  constexpr std::chrono::milliseconds kPause{200};
  constexpr std::chrono::seconds kLate{2};
  const auto limit = std::chrono::steady_clock::now() + lease_ttl + kLate;
  while (true) {
    const auto members = read_members(store, keys);
    if (!members) return members.error();
    const std::optional<Obstacle> obstacle = find_obstacle(self, *members);
    if (!obstacle) return {};
    if (!obstacle->may_vanish || std::chrono::steady_clock::now() >= limit) return obstacle->error;
    std::this_thread::sleep_for(kPause);
  }
}

bool is_own_socket(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode) && found.st_uid == ::geteuid();
}

}  // namespace everstep::launcher
