#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "trainer/nccl/nccl_mesh.h"
#include "trainer/wire/frame.h"
#include "trainer/wire/transport.h"

namespace everstep::trainer {

// Frames that go by NCCL, and where they stand: what the transport keeps of a peer, and moves on. Not thread-safe, but
// for what it says of `host`.
class NcclTraffic {
 public:
  struct Receive {
    int from = 0;
    Channel channel = Channel::kTensors;
    FrameHeader expected;
    Buffer into;                  // while no transfer has it
    CudaEvent is_free = nullptr;  // when `into` may be written
    Buffer notice{};
    ReceiveId notice_id = 0;
    std::optional<FrameHeader> came{};  // with the notice
    CudaEvent over = nullptr;           // the transfer
    std::optional<Error> error{};       // that of the peer alone
  };

  NcclTraffic(NcclMesh& mesh, Transport& host, std::uint64_t lineage, Generation generation);
  NcclTraffic(const NcclTraffic&) = delete;
  NcclTraffic& operator=(const NcclTraffic&) = delete;
  ~NcclTraffic();

  bool has(int peer, Channel channel) const;

  // `is_ready`, `is_free`: the place in the compute stream from which the payload may be read, or written.
  void send(int to, Channel channel, Buffer payload, CudaEvent is_ready);
  ReceiveId receive(int from, Channel channel, const FrameHeader& expected, Buffer into, CudaEvent is_free);

  static constexpr ReceiveId kFirst = ReceiveId{1} << 62;
  Receive& find(ReceiveId id);
  void forget(ReceiveId id) { receives_.erase(id); }

  // Does what can be done now. Whether a receive has come.
  Result<bool> advance();

  // For the thread that computes: from here on it knows which sends are over, and may free or change what they sent.
  void take_over_sent();

  // What `compute` is given from now on begins when the sends at work are over. Peers may have said that they have all
  // of it, and a device would not know.
  Status compute_after_sends(CudaStream compute);

  // Whether somebody may have to be told or heard of.
  bool is_quiet() const;
  bool all_sent() const;

  // After its loss: what concerns this peer fails. The links are for the caller to end.
  std::vector<NcclRemains> lose(int peer, const Error& error);

  // NCCL failed with this peer, and nobody has said yet that it died.
  struct Broken {
    int peer = 0;
    Error error;
    std::chrono::steady_clock::time_point since;
  };
  const std::optional<Broken>& broken() const { return broken_; }

  static FrameHeader notice_header(FrameHeader header);
  static Buffer encode_notice(const FrameHeader& header);

 private:
  static constexpr std::size_t kLanes = 2;
  static std::size_t lane_of(Channel channel) { return static_cast<std::size_t>(channel); }

  struct Outgoing {
    Buffer payload;
    CudaEvent is_ready = nullptr;
  };
  struct Peer {
    std::array<std::deque<Outgoing>, kLanes> out{};
    std::array<std::deque<ReceiveId>, kLanes> in{};  // that no transfer was launched for
    std::deque<std::size_t> turns{};                 // lanes of credits that came
    std::optional<ReceiveId> credit{};               // the next one
    Buffer credit_into{};
    std::optional<ReceiveId> arriving{};
    bool has_output() const { return !out[0].empty() || !out[1].empty(); }
  };

  Result<bool> advance(int peer, Peer& traffic, NcclMesh::Pair& pair);
  Status take_notices(Peer& traffic);
  Status take_credits(int peer, Peer& traffic);
  Status launch_receive(int peer, Peer& traffic, NcclLink& link);
  Status launch_send(Peer& traffic, NcclLink& link);
  Status wait_for_sends_of(const Buffer& into, const NcclLane& lane);
  Status launch(NcclLink& link, const NcclLane& lane, Buffer payload, CudaEvent after);
  FrameHeader credit_header() const;

  NcclMesh& mesh_;
  Transport& host_;
  const std::uint64_t lineage_;
  const Generation generation_;
  std::map<int, Peer> peers_;
  std::map<ReceiveId, Receive> receives_;
  ReceiveId next_ = kFirst;
  std::vector<NcclFlight> sent_;  // over, and not taken over
  std::optional<Broken> broken_;
};

}  // namespace everstep::trainer
