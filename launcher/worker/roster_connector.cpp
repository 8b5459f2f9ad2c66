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

RosterConnector::RosterConnector(trainer::PeerConnector& connector, const WorkerDevice& device, elastic::Keys keys,
                                 std::uint64_t lineage, WorkerId self, Done done)
    : connector_(connector),
      device_(device),
      keys_(std::move(keys)),
      lineage_(lineage),
      self_(self),
      done_(std::move(done)) {}

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
  const elastic::Attempt& attempt = roster.attempt;
  trainer::ConnectOutcome outcome = connector_.connect(peers, kTimeToConnect);
  if (!outcome.connection) return fail(attempt, peers, outcome.connection.error(), outcome.lost);
  Connection connection{std::move(outcome.connection).value(), nullptr};
  WorkerDevice::Place place{lineage_, attempt.generation, peers.worker, roster.plan.depth, roster.plan.width};
  place.unreachable = unreachable_of(peers);
  place.on_unreachable = [&](int peer) {
    const std::scoped_lock lock(mutex_);
    unreachable_.insert(peers.members[peer].id);
  };
  auto links = device_.connect(*connection.peers.transport, place, [&] { return is_open(attempt); });
  if (!links) {
    const auto lost = connection.peers.transport->lost();
    abandon(connection.peers);
    return fail(attempt, peers, links.error(), lost);
  }
  connection.links = std::move(links).value();
  const std::scoped_lock lock(mutex_);
  const auto found = tries_.find(attempt);
  if (found == tries_.end()) return abandon(connection.peers);  // dropped meanwhile
  found->second = std::move(connection);
  done_(elastic::Connected{attempt});
}

void RosterConnector::fail(const elastic::Attempt& attempt, const trainer::PeerRoster& peers, const Error& error,
                           const std::optional<trainer::LostPeer>& lost) {
  elastic::ConnectFailed failed{attempt, std::nullopt, error};
  // One that gave this try up, or refuses it, lives.
  if (lost && lost->how != trainer::LostPeer::How::kRefused) {
    failed.lost = peers.members[lost->worker].id;
    failed.lost_is_dead = lost->how == trainer::LostPeer::How::kClosed;
  }
  const std::scoped_lock lock(mutex_);
  if (tries_.erase(attempt) > 0) done_(std::move(failed));
}

std::set<int> RosterConnector::unreachable_of(const trainer::PeerRoster& peers) {
  const std::scoped_lock lock(mutex_);
  std::set<int> places;
  for (std::size_t i = 0; i < peers.members.size(); ++i) {
    if (unreachable_.contains(peers.members[i].id)) places.insert(static_cast<int>(i));
  }
  return places;
}

bool RosterConnector::is_open(const elastic::Attempt& attempt) {
  const std::scoped_lock lock(mutex_);
  return tries_.contains(attempt);
}

void RosterConnector::drop(const elastic::Attempt& attempt) {
  std::optional<Connection> connection;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = tries_.find(attempt);
    if (found == tries_.end()) return;
    connection = std::move(found->second);
    tries_.erase(found);
  }
  connector_.give_up(attempt.generation, attempt.nonce);
  if (connection) abandon(connection->peers);
}

std::optional<RosterConnector::Connection> RosterConnector::take(const elastic::Attempt& attempt) {
  const std::scoped_lock lock(mutex_);
  const auto found = tries_.find(attempt);
  if (found == tries_.end() || !found->second) return std::nullopt;
  std::optional<Connection> connection = std::move(found->second);
  tries_.erase(found);
  return connection;
}

}  // namespace everstep::launcher
