#include "trainer/nccl/nccl_traffic.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kCreditBytes = 8;

}  // namespace

NcclTraffic::NcclTraffic(NcclMesh& mesh, Transport& host, std::uint64_t lineage, Generation generation)
    : mesh_(mesh), host_(host), lineage_(lineage), generation_(generation) {
  for (const int peer : mesh.peers()) peers_[peer];
}

// This thread may be the one that frees what came, and has to know that the transfers are over.
NcclTraffic::~NcclTraffic() {
  take_over_sent();
  if (peers_.empty() && receives_.empty()) return;
  const NcclApi& api = mesh_.device().api();
  const auto destroy = [&](CudaEvent event) {
    if (event != nullptr) api.event_destroy(event);
  };
  for (auto& [id, receive] : receives_) {
    destroy(receive.is_free);
    if (receive.over != nullptr) static_cast<void>(api.event_query(receive.over));
    destroy(receive.over);
  }
  for (auto& [peer, traffic] : peers_) {
    for (auto& lane : traffic.out) {
      for (const Outgoing& frame : lane) destroy(frame.is_ready);
    }
  }
}

bool NcclTraffic::has(int peer, Channel channel) const { return lane_of(channel) < kLanes && peers_.contains(peer); }

FrameHeader NcclTraffic::notice_header(FrameHeader header) {
  header.length = kFrameHeaderBytes;
  return header;
}

Buffer NcclTraffic::encode_notice(const FrameHeader& header) {
  const FrameBytes bytes = encode_frame(header);
  Buffer notice = allocate_scratch(bytes.size());
  std::copy(bytes.begin(), bytes.end(), notice.data);
  return notice;
}

FrameHeader NcclTraffic::credit_header() const {
  FrameHeader header;
  header.lineage = lineage_;
  header.generation = generation_;
  header.kind = FrameKind::kCredit;
  header.length = kCreditBytes;
  return header;
}

void NcclTraffic::send(int to, Channel channel, Buffer payload, CudaEvent is_ready) {
  peers_.at(to).out[lane_of(channel)].push_back({std::move(payload), is_ready});
}

ReceiveId NcclTraffic::receive(int from, Channel channel, const FrameHeader& expected, Buffer into, CudaEvent is_free) {
  Receive& receive = receives_[next_];
  receive = {from, channel, expected, std::move(into), is_free};
  receive.notice = allocate_scratch(kFrameHeaderBytes);
  receive.notice_id = host_.post_receive(from, channel, notice_header(expected), receive.notice);
  peers_.at(from).in[lane_of(channel)].push_back(next_);
  return next_++;
}

NcclTraffic::Receive& NcclTraffic::find(ReceiveId id) {
  const auto found = receives_.find(id);
  EVERSTEP_CHECK(found != receives_.end(), "a receive is waited for that was not posted or is over");
  return found->second;
}

bool NcclTraffic::is_quiet() const {
  return std::all_of(receives_.begin(), receives_.end(),
                     [](const auto& entry) { return entry.second.over != nullptr || entry.second.error; }) &&
         all_sent();
}

bool NcclTraffic::all_sent() const {
  return std::all_of(peers_.begin(), peers_.end(), [this](const auto& entry) {
    const NcclMesh::Pair* const pair = mesh_.with(entry.first);
    return !entry.second.has_output() && (pair == nullptr || pair->out.is_idle());
  });
}

Result<bool> NcclTraffic::advance() {
  bool any = false;
  for (auto& [peer, traffic] : peers_) {
    NcclMesh::Pair* const pair = mesh_.with(peer);
    if (pair == nullptr || (broken_ && broken_->peer == peer)) continue;
    auto came = advance(peer, traffic, *pair);
    if (!came) return came;
    any = any || *came;
  }
  return any;
}

Result<bool> NcclTraffic::advance(int peer, Peer& traffic, NcclMesh::Pair& pair) {
  const auto breaks = [&](const Error& error) {
    if (!broken_) broken_ = Broken{peer, error, std::chrono::steady_clock::now()};
  };
  bool came = false;
  if (traffic.arriving) {
    auto flight = pair.in.advance();
    if (!flight) breaks(flight.error());
    if (flight && *flight) {
      Receive& receive = find(*std::exchange(traffic.arriving, std::nullopt));
      receive.into = std::move((*flight)->payload);
      receive.over = (*flight)->over;
      mesh_.device().give_back((*flight)->use, (*flight)->lane);
      came = true;
    }
  }
  if (!pair.out.is_idle()) {
    auto flight = pair.out.advance();
    if (!flight) breaks(flight.error());
    if (flight && *flight) {
      mesh_.device().give_back((*flight)->use, (*flight)->lane);
      sent_.push_back(std::move(**flight));
    }
  }
  EVERSTEP_TRY(take_notices(traffic));
  EVERSTEP_TRY(take_credits(peer, traffic));
  Status launched = launch_receive(peer, traffic, pair.in);
  if (launched) launched = launch_send(traffic, pair.out);
  if (!launched) breaks(launched.error());
  return came;
}

void NcclTraffic::take_over_sent() {
  for (const NcclFlight& flight : sent_) {
    static_cast<void>(mesh_.device().api().event_query(flight.over));
    mesh_.device().api().event_destroy(flight.over);
  }
  sent_.clear();
}

Status NcclTraffic::compute_after_sends(CudaStream compute) {
  for (const int peer : mesh_.peers()) {
    const auto& flight = mesh_.with(peer)->out.flight();
    if (!flight || flight->over == nullptr) continue;
    EVERSTEP_TRY(check_nccl(mesh_.device().api().stream_wait_event(compute, flight->over), "waiting for an event"));
  }
  return {};
}

// In their order; what the host says of a notice concerns the transport.
Status NcclTraffic::take_notices(Peer& traffic) {
  for (const auto& lane : traffic.in) {
    for (const ReceiveId id : lane) {
      Receive& receive = find(id);
      if (receive.came) continue;
      if (!host_.ready(receive.notice_id)) break;
      const Result<FrameHeader> notice = host_.wait(receive.notice_id, 0ms);
      if (!notice) return notice.error();
      const Result<FrameHeader> header = decode_frame(receive.notice.as<const std::byte>());
      if (!header) return header.error();
      EVERSTEP_TRY(check_frame(*header, receive.expected));
      receive.came = *header;
    }
  }
  return {};
}

Status NcclTraffic::take_credits(int peer, Peer& traffic) {
  while (traffic.turns.size() < traffic.out[0].size() + traffic.out[1].size()) {
    if (!traffic.credit) {
      traffic.credit_into = allocate_scratch(kCreditBytes);
      traffic.credit = host_.post_receive(peer, Channel::kCredits, credit_header(), traffic.credit_into);
    }
    if (!host_.ready(*traffic.credit)) return {};
    const Result<FrameHeader> credit = host_.wait(*traffic.credit, 0ms);
    if (!credit) return credit.error();  // after an interruption it is waited for once more
    traffic.credit.reset();
    const auto lane = std::to_integer<std::size_t>(traffic.credit_into.data[0]);
    const auto promised = std::count(traffic.turns.begin(), traffic.turns.end(), lane);
    if (lane >= kLanes || promised >= std::ssize(traffic.out[lane])) {
      return Error{ErrorCode::kInternal, "worker " + std::to_string(peer) + " asks for a frame that there is none of",
                   "do all workers run the same build?"};
    }
    traffic.turns.push_back(lane);
  }
  return {};
}

Status NcclTraffic::launch_receive(int peer, Peer& traffic, NcclLink& link) {
  if (!link.is_idle()) return {};
  const auto lane = std::find_if(traffic.in.begin(), traffic.in.end(), [this](const auto& waiting) {
    return !waiting.empty() && find(waiting.front()).came;
  });
  if (lane == traffic.in.end()) return {};
  const auto stream = mesh_.device().take(NcclLaneUse::kReceive);
  if (!stream) return stream.error();
  if (!*stream) return {};
  Receive& receive = find(lane->front());
  if (Status ordered = wait_for_sends_of(receive.into, **stream); !ordered) {
    mesh_.device().give_back(NcclLaneUse::kReceive, **stream);
    return ordered;
  }
  traffic.arriving = lane->front();
  lane->pop_front();
  EVERSTEP_TRY(launch(link, **stream, std::exchange(receive.into, {}), std::exchange(receive.is_free, nullptr)));
  Buffer credit = allocate_zeroed(kCreditBytes);
  credit.data[0] = static_cast<std::byte>(lane - traffic.in.begin());
  host_.send(peer, Channel::kCredits, credit_header(), std::move(credit));
  return {};
}

Status NcclTraffic::launch_send(Peer& traffic, NcclLink& link) {
  if (!link.is_idle() || traffic.turns.empty()) return {};
  const auto stream = mesh_.device().take(NcclLaneUse::kSend);
  if (!stream) return stream.error();
  if (!*stream) return {};
  auto& lane = traffic.out[traffic.turns.front()];
  traffic.turns.pop_front();
  Outgoing frame = std::move(lane.front());
  lane.pop_front();
  return launch(link, **stream, std::move(frame.payload), frame.is_ready);
}

// A sum that was sent is the buffer of the total that comes back.
Status NcclTraffic::wait_for_sends_of(const Buffer& into, const NcclLane& lane) {
  for (const int peer : mesh_.peers()) {
    const auto& flight = mesh_.with(peer)->out.flight();
    if (!flight || flight->over == nullptr) continue;
    const Buffer& sent = flight->payload;
    if (sent.data >= into.data + into.size || into.data >= sent.data + sent.size) continue;
    EVERSTEP_TRY(check_nccl(mesh_.device().api().stream_wait_event(lane.stream, flight->over), "waiting for an event"));
  }
  return {};
}

Status NcclTraffic::launch(NcclLink& link, const NcclLane& lane, Buffer payload, CudaEvent after) {
  Status launched = link.launch(std::move(payload), lane, after);
  mesh_.device().api().event_destroy(after);  // CUDA keeps it as long as a stream waits for it
  return launched;
}

std::vector<NcclRemains> NcclTraffic::lose(int peer, const Error& error) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return {};
  for (auto& lane : found->second.out) {
    for (const Outgoing& frame : lane) mesh_.device().api().event_destroy(frame.is_ready);
  }
  for (auto& [id, receive] : receives_) {
    if (receive.from != peer || receive.over != nullptr) continue;
    receive.error = error;
    if (receive.is_free != nullptr) mesh_.device().api().event_destroy(std::exchange(receive.is_free, nullptr));
  }
  peers_.erase(found);
  if (broken_ && broken_->peer == peer) broken_.reset();
  return mesh_.take(peer);
}

}  // namespace everstep::trainer
