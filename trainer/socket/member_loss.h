#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "trainer/socket/handshake_message.h"
#include "trainer/socket/peer_address.h"
#include "trainer/wire/transport.h"

namespace everstep::trainer {

struct HandshakeMember {
  WorkerId id;
  PeerAddress address;
  std::string name{};  // for people; empty: its place
};

// Why a try to connect fails, in words, and because of whom.
class MemberLoss {
 public:
  explicit MemberLoss(const std::vector<HandshakeMember>& members) : members_(members) {}

  const std::optional<LostPeer>& lost() const { return lost_; }

  Error lose(const LostPeer& peer, ErrorCode code, const std::string& what, const std::string& hint) {
    lost_ = peer;
    return {code, name_of(peer.worker) + " " + what, hint};
  }

  Error cannot_reach(int worker, const Error& why) {
    const std::string hint =
        "its log says why; if it runs, this host does not reach that address: see its --bind and --advertise";
    return lose({worker, how_of(why.code)}, why.code, "cannot be reached at " + address_of(worker) + ": " + why.message,
                why.hint.empty() ? hint : why.hint);
  }

  Error hung_up(int worker) {
    return lose({worker, LostPeer::How::kClosed}, ErrorCode::kUnavailable, "hung up before it said who it is",
                "its log says why");
  }

  Error somebody_else_answers(int worker, const std::string& why) {
    return lose({worker, LostPeer::How::kRefused}, ErrorCode::kStaleGeneration,
                "is not what answers at " + address_of(worker) + ": " + why,
                "does another program use this address, or was the worker started again?");
  }

  Error refused(int worker, Refusal refusal) {
    const bool may_change = refusal == Refusal::kTooEarly;
    return lose({worker, may_change ? LostPeer::How::kSilent : LostPeer::How::kRefused}, code_of(refusal),
                "refused this worker's connection: " + std::string(to_string(refusal)), "its log says more");
  }

  std::string name_of(int worker) const {
    const std::string& name = members_[worker].name;
    return name.empty() ? "worker " + std::to_string(worker) : name;
  }

 private:
  static LostPeer::How how_of(ErrorCode code) {
    if (code == ErrorCode::kUnavailable) return LostPeer::How::kClosed;
    return code == ErrorCode::kInvalidArgument ? LostPeer::How::kRefused : LostPeer::How::kSilent;
  }

  // The other side's refusal, as what this side has to do about it.
  static ErrorCode code_of(Refusal refusal) {
    if (refusal == Refusal::kBadProof) return ErrorCode::kInvalidArgument;
    return refusal == Refusal::kTooEarly ? ErrorCode::kDeadlineExceeded : ErrorCode::kStaleGeneration;
  }

  std::string address_of(int worker) const { return shown_address(to_text(members_[worker].address)); }

  const std::vector<HandshakeMember>& members_;
  std::optional<LostPeer> lost_;
};

}  // namespace everstep::trainer
