#include "launcher/worker/roster_connector.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "elastic/brain/situation.h"

namespace everstep::launcher {
namespace {

// Peers may still be loading a checkpoint or waiting for their view.
constexpr std::chrono::seconds kTimeToConnect{20};

// Nobody is to wait for this worker, nor to take it for dead.
void abandon(trainer::PeerConnection& connection) {
  connection.news->give_up();
  connection.transport->leave();
}

}  // namespace

RosterConnector::RosterConnector(trainer::PeerConnector& connector, elastic::Keys keys, std::uint64_t lineage,
                                 WorkerId self, Done done)
    : connector_(connector), keys_(std::move(keys)), lineage_(lineage), self_(self), done_(std::move(done)) {}

RosterConnector::~RosterConnector() {
  std::vector<elastic::Attempt> open;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [attempt, connection] : tries_) open.push_back(attempt);
  }
  for (const elastic::Attempt& attempt : open) drop(attempt);
}

void RosterConnector::connect(const elastic::RosterRecord& roster, const elastic::View& view) {
  trainer::PeerRoster peers;
  peers.lineage = lineage_;
  peers.generation = roster.attempt.generation;
  peers.nonce = roster.attempt.nonce;
  const std::vector<WorkerId> connected = roster.connected();
  for (const WorkerId& id : connected) {
    const auto member = read_member(view, keys_, id);
    if (!member) {
      done_(elastic::ConnectFailed{
          roster.attempt, id, {ErrorCode::kUnavailable, "a worker has left: " + to_string(id), ""}});
      return;
    }
    peers.members.push_back({id, member->address, member->name});
  }
  const auto self = std::find(connected.begin(), connected.end(), self_);
  EVERSTEP_CHECK(self != connected.end(), "a worker connects to rosters that it is part of");
  peers.worker = static_cast<int>(self - connected.begin());
  {
    const std::scoped_lock lock(mutex_);
    tries_.emplace(roster.attempt, std::nullopt);
  }
  threads_.start([this, roster, peers] { run(roster, peers); });
}

void RosterConnector::run(const elastic::RosterRecord& roster, const trainer::PeerRoster& peers) {
  trainer::ConnectOutcome outcome = connector_.connect(peers, kTimeToConnect);
  if (!outcome.connection) {
    elastic::ConnectFailed failed{roster.attempt, std::nullopt, outcome.connection.error()};
    // One that gave this try up, or refuses it, lives.
    if (outcome.lost && outcome.lost->how != trainer::LostPeer::How::kRefused) {
      failed.lost = peers.members[outcome.lost->worker].id;
      failed.lost_is_dead = outcome.lost->how == trainer::LostPeer::How::kClosed;
    }
    const std::scoped_lock lock(mutex_);
    if (tries_.erase(roster.attempt) > 0) done_(std::move(failed));
    return;
  }
  const std::scoped_lock lock(mutex_);
  const auto found = tries_.find(roster.attempt);
  if (found == tries_.end()) {  // dropped meanwhile
    abandon(*outcome.connection);
    return;
  }
  found->second = std::move(outcome.connection).value();
  done_(elastic::Connected{roster.attempt});
}

void RosterConnector::drop(const elastic::Attempt& attempt) {
  std::optional<trainer::PeerConnection> connection;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = tries_.find(attempt);
    if (found == tries_.end()) return;
    connection = std::move(found->second);
    tries_.erase(found);
  }
  connector_.give_up(attempt.generation, attempt.nonce);
  if (connection) abandon(*connection);
}

std::optional<trainer::PeerConnection> RosterConnector::take(const elastic::Attempt& attempt) {
  const std::scoped_lock lock(mutex_);
  const auto found = tries_.find(attempt);
  if (found == tries_.end() || !found->second) return std::nullopt;
  std::optional<trainer::PeerConnection> connection = std::move(found->second);
  tries_.erase(found);
  return connection;
}

}  // namespace everstep::launcher
