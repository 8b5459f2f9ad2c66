#include "elastic/sim/connector.h"

#include <algorithm>

#include "elastic/sim/member_loop.h"
#include "elastic/sim/process.h"
#include "elastic/sim/world.h"

namespace everstep::elastic::sim {
namespace {

constexpr Tick kConnectsWithin = 20 * kSecond;
constexpr std::size_t kMostParked = 256;

}  // namespace

void Connector::connect(const RosterRecord& roster, const View& view) {
  World& world = self_.process().world();
  for (const WorkerId& id : roster.connected()) {
    if (view.find(world.keys.member(id)) != nullptr) continue;
    return self_.tell(ConnectFailed{roster.attempt, id, {ErrorCode::kUnavailable, "a worker has left", ""}});
  }
  Connection& connection = tries_[roster.attempt];
  connection.roster = roster;
  connection.token = world.dice().bits();
  for (const WorkerId& id : roster.connected()) {
    if (id != self_.id()) world.network.send(Hello{roster.attempt, self_.id(), id, connection.token});
  }
  if (roster.connected().size() == 1) {
    connection.is_up = true;
    return self_.tell(Connected{roster.attempt});
  }
  self_.later(kConnectsWithin, [this, attempt = roster.attempt] {
    const auto found = tries_.find(attempt);
    if (found == tries_.end() || found->second.is_up) return;
    for (const WorkerId& id : found->second.roster.connected()) {
      const bool is_missing = id != self_.id() && !found->second.peers.contains(id);
      if (is_missing) return fail(attempt, id, false, "it did not connect in time");
    }
  });
  const std::vector<Hello> parked = parked_;
  for (const Hello& hello : parked) {
    if (is_for(hello, connection)) accept(connection, hello);
  }
}

bool Connector::is_for(const Hello& hello, const Connection& connection) const {
  if (self_.process().world().mutation == Mutation::kHandshakeWithoutNonce) {
    return hello.attempt.generation == connection.roster.attempt.generation;
  }
  return hello.attempt == connection.roster.attempt;
}

void Connector::take(const Hello& hello) {
  for (auto& [attempt, connection] : tries_) {
    if (is_for(hello, connection)) return accept(connection, hello);
  }
  if (parked_.size() == kMostParked) parked_.erase(parked_.begin());
  parked_.push_back(hello);
}

void Connector::accept(Connection& connection, const Hello& hello) {
  const std::vector<WorkerId> members = connection.roster.connected();
  if (connection.is_up || std::find(members.begin(), members.end(), hello.from) == members.end()) return;
  connection.peers.try_emplace(hello.from, hello.token);
  if (connection.peers.size() + 1 < members.size()) return;
  connection.is_up = true;
  self_.tell(Connected{connection.roster.attempt});
}

void Connector::take(const Frame& frame) {
  for (auto& [attempt, connection] : tries_) {
    if (connection.token == frame.token) return connection.inbox.push_back(frame);
  }
}

void Connector::peer_lost(const WorkerId& id, bool is_dead) {
  std::vector<Attempt> failed;
  for (auto& [attempt, connection] : tries_) {
    const std::vector<WorkerId> members = connection.roster.connected();
    if (std::find(members.begin(), members.end(), id) == members.end()) continue;
    if (connection.is_up) {
      connection.lost = {id, is_dead};
    } else {
      failed.push_back(attempt);
    }
  }
  for (const Attempt& attempt : failed) fail(attempt, id, is_dead, "it was lost while connecting");
}

void Connector::fail(const Attempt& attempt, const WorkerId& lost, bool is_dead, const std::string& why) {
  tries_.erase(attempt);
  self_.tell(ConnectFailed{attempt, lost, {ErrorCode::kUnavailable, why, ""}, is_dead});
}

std::optional<Connection> Connector::take(const Attempt& attempt) {
  const auto found = tries_.find(attempt);
  if (found == tries_.end() || !found->second.is_up) return std::nullopt;
  Connection connection = std::move(found->second);
  tries_.erase(found);
  return connection;
}

}  // namespace everstep::elastic::sim
