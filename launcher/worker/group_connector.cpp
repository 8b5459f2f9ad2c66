#include "launcher/worker/group_connector.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "elastic/brain/situation.h"

namespace everstep::launcher {
namespace {

// Peers may still be loading a checkpoint or waiting for their view.
constexpr std::chrono::seconds kPatience{20};

// Nobody is to wait for this worker, nor to take it for dead.
void abandon(trainer::PeerConnection& connection) {
  connection.news->give_up();
  connection.transport->leave();
}

}  // namespace

GroupConnector::GroupConnector(trainer::PeerConnector& connector, elastic::Keys keys, std::uint64_t lineage,
                               WorkerId self, Done done)
    : connector_(connector), keys_(std::move(keys)), lineage_(lineage), self_(self), done_(std::move(done)) {}

GroupConnector::~GroupConnector() {
  std::vector<elastic::Attempt> open;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [attempt, connection] : tries_) open.push_back(attempt);
  }
  for (const elastic::Attempt& attempt : open) drop(attempt);
}

void GroupConnector::connect(const elastic::GroupRecord& group, const elastic::View& view) {
  trainer::PeerGroup members;
  members.lineage = lineage_;
  members.generation = group.attempt.generation;
  members.nonce = group.attempt.nonce;
  const std::vector<WorkerId> connected = group.connected();
  for (const WorkerId& id : connected) {
    const auto member = read_member(view, keys_, id);
    if (!member) {
      done_(elastic::ConnectFailed{
          group.attempt, id, {ErrorCode::kUnavailable, "a worker has left: " + to_string(id), ""}});
      return;
    }
    members.members.push_back({id, member->address, member->name});
  }
  const auto self = std::find(connected.begin(), connected.end(), self_);
  EVERSTEP_CHECK(self != connected.end(), "a worker connects to groups that it is part of");
  members.worker = static_cast<int>(self - connected.begin());
  {
    const std::scoped_lock lock(mutex_);
    tries_.emplace(group.attempt, std::nullopt);
  }
  threads_.start([this, group, members] { run(group, members); });
}

void GroupConnector::run(const elastic::GroupRecord& group, const trainer::PeerGroup& members) {
  trainer::ConnectOutcome outcome = connector_.connect(members, kPatience);
  if (!outcome.connection) {
    elastic::ConnectFailed failed{group.attempt, std::nullopt, outcome.connection.error()};
    // One that gave this try up, or refuses it, lives.
    if (outcome.lost && outcome.lost->how != trainer::LostPeer::How::kRefused) {
      failed.lost = members.members[outcome.lost->worker].id;
      failed.lost_is_dead = outcome.lost->how == trainer::LostPeer::How::kClosed;
    }
    const std::scoped_lock lock(mutex_);
    if (tries_.erase(group.attempt) > 0) done_(std::move(failed));
    return;
  }
  const std::scoped_lock lock(mutex_);
  const auto found = tries_.find(group.attempt);
  if (found == tries_.end()) {  // dropped meanwhile
    abandon(*outcome.connection);
    return;
  }
  found->second = std::move(outcome.connection).value();
  done_(elastic::Connected{group.attempt});
}

void GroupConnector::drop(const elastic::Attempt& attempt) {
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

std::optional<trainer::PeerConnection> GroupConnector::take(const elastic::Attempt& attempt) {
  const std::scoped_lock lock(mutex_);
  const auto found = tries_.find(attempt);
  if (found == tries_.end() || !found->second) return std::nullopt;
  std::optional<trainer::PeerConnection> connection = std::move(found->second);
  tries_.erase(found);
  return connection;
}

}  // namespace everstep::launcher
