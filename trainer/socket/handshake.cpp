#include "trainer/socket/handshake.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <poll.h>

#include "base/log_line.h"
#include "trainer/socket/knocks.h"
#include "trainer/socket/open_connection.h"
#include "trainer/socket/sockets.h"

namespace everstep::trainer {
namespace {

using Clock = std::chrono::steady_clock;
using How = LostPeer::How;

// A call that has to be made again. A worker that many call at once does not take all their calls, or hangs up on some
// before it has listened to them.
struct LaterCall {
  int worker = 0;
  Purpose purpose;
  int tries = 1;
  Clock::time_point at;
};

class Handshake {
 public:
  Handshake(CallInbox& inbox, const HandshakeRequest& request)
      : inbox_(inbox),
        request_(request),
        me_{request.worker, request.members[request.worker].id},
        loss_(request.members),
        done_(request.members.size()),
        tickets_(request.members.size()) {}

  HandshakeOutcome run(std::chrono::milliseconds timeout) {
    if (const Status status = connect(timeout); !status) {
      tell_of_failure();
      return {status.error(), loss_.lost()};
    }
    return {std::move(done_)};
  }

 private:
  using Stage = OpenConnection::Stage;

  Status connect(std::chrono::milliseconds timeout) {
    const Clock::time_point deadline = Clock::now() + timeout;
    for (int worker = 0; worker < me_.worker; ++worker) EVERSTEP_TRY(call(worker, {}));
    knock_at_ = Clock::now() + kKnockAfter;
    while (const std::optional<int> missing = first_missing()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
      if (left <= 0) {
        return loss_.lose({*missing, How::kSilent}, ErrorCode::kDeadlineExceeded,
                          "did not connect within " + std::to_string(timeout.count()) + " ms", "is it running?");
      }
      EVERSTEP_TRY(step(static_cast<int>(std::min<std::int64_t>(left, later_.empty() ? kLongestStepMs : 1))));
      EVERSTEP_TRY(call_again());
      if (Clock::now() >= knock_at_) EVERSTEP_TRY(knock());
      if (const auto gone = knocks_.first_without_answer()) {
        return loss_.cannot_reach(*gone, {ErrorCode::kUnavailable, errno_text(ECONNREFUSED), {}});
      }
    }
    return {};
  }

  Status knock() {
    knock_at_ = Clock::now() + kKnockEvery;
    for (int worker = me_.worker + 1; worker < static_cast<int>(done_.size()); ++worker) {
      if (done_[worker].lifeline) continue;
      Result<FileDescriptor> socket = request_.dialer.knock(request_.members[worker].address);
      if (!socket && socket.error().code == ErrorCode::kUnavailable) return loss_.cannot_reach(worker, socket.error());
      if (socket) knocks_.add(worker, std::move(socket).value());
    }
    return {};
  }

  std::optional<int> first_missing() const {
    for (int worker = 0; worker < static_cast<int>(done_.size()); ++worker) {
      if (worker != me_.worker && !done_[worker].are_complete()) return worker;
    }
    return std::nullopt;
  }

  std::unique_ptr<ByteStream>& place_of(int worker, const Purpose& purpose) {
    PeerStreams& peer = done_[worker];
    return purpose.channel ? peer.channels[static_cast<std::size_t>(*purpose.channel)] : peer.lifeline;
  }

  // A channel is opened by whoever has the lifeline already.
  bool is_wanted(int worker, const Purpose& purpose) {
    return !place_of(worker, purpose) && (!purpose.channel || done_[worker].lifeline);
  }

  Status call(int worker, const Purpose& purpose, int tries = 1) {
    Result<std::unique_ptr<ByteStream>> stream = request_.dialer.dial(request_.members[worker].address);
    if (!stream) return loss_.cannot_reach(worker, stream.error());
    if (!*stream) {
      later_.push_back({worker, purpose, tries, Clock::now() + kQueuePause});
      return {};
    }
    OpenConnection connection;
    connection.stream = std::move(stream).value();
    connection.tries = tries;
    connection.transcript.hello = {
        inbox_.attempt(), me_, {worker, request_.members[worker].id}, purpose, fresh_nonce()};
    if (purpose.channel) connection.transcript.ticket = tickets_[worker];
    open_.push_back(std::move(connection));
    return {};
  }

  Status call_again() {
    for (const LaterCall& later : std::exchange(later_, {})) {
      if (Clock::now() < later.at) {
        later_.push_back(later);
      } else {
        EVERSTEP_TRY(call(later.worker, later.purpose, later.tries));
      }
    }
    return {};
  }

  Status step(int timeout_ms) {
    std::vector<pollfd> polled{{inbox_.descriptor(), POLLIN, 0}};
    for (const OpenConnection& connection : open_) {
      polled.push_back({connection.stream->descriptor(), connection.awaited(), 0});
    }
    for (const PeerStreams& peer : done_) {
      const bool is_watched = peer.lifeline && !peer.heard.said_goodbye;
      polled.push_back({is_watched ? peer.lifeline->descriptor() : -1, POLLRDHUP, 0});
    }
    ::poll(polled.data(), polled.size(), timeout_ms);
    if (inbox_.is_given_up()) return Error{ErrorCode::kCancelled, "the try to connect was given up", {}};

    const std::size_t open_count = open_.size();
    for (std::size_t worker = 0; worker < done_.size(); ++worker) {
      if (polled[1 + open_count + worker].revents != 0) EVERSTEP_TRY(hung_up(static_cast<int>(worker)));
    }
    for (std::size_t i = 0; i < open_count; ++i) {
      if (polled[1 + i].revents != 0) {
        EVERSTEP_TRY(advance(i));
      }
      if (open_[i].stream && open_[i].side == Side::kCalled && open_[i].until <= Clock::now()) {
        forget(open_[i], "it began a handshake and fell silent");
      }
    }
    for (IncomingCall& incoming : inbox_.take()) answer(std::move(incoming));
    std::erase_if(open_, [](const OpenConnection& connection) { return !connection.stream; });
    return {};
  }

  // A peer that was connected already has hung up. What it said before tells why; if that is nothing, it is dead.
  Status hung_up(int worker) {
    PeerStreams& peer = done_[worker];
    const std::optional<int> dead = hear_last_words(*peer.lifeline, peer.heard, static_cast<int>(done_.size()));
    if (peer.heard.said_goodbye && !peer.heard.gave_up && !dead) return {};
    peer.lifeline.reset();
    if (dead) {
      return loss_.lose({*dead, How::kClosed}, ErrorCode::kUnavailable,
                        "died or cannot be reached, as " + loss_.name_of(worker) + " says", "their logs say why");
    }
    if (peer.heard.gave_up) {
      return loss_.lose({worker, How::kRefused}, ErrorCode::kUnavailable, "gave the try to connect up",
                        "its log says why");
    }
    return loss_.lose({worker, How::kClosed}, ErrorCode::kUnavailable, "died", "its log says why");
  }

  void answer(IncomingCall incoming) {
    const CallerHello& hello = incoming.hello;
    const int caller = hello.caller.worker;
    const bool known = caller > me_.worker && caller < static_cast<int>(request_.members.size()) &&
                       hello.caller.id == request_.members[caller].id && hello.called == me_;
    if (!known || !is_wanted(caller, hello.purpose)) {
      log_refusal(caller, to_string(Refusal::kNotExpected));
      return turn_away(std::move(incoming.stream), Refusal::kNotExpected);
    }
    OpenConnection connection;
    connection.side = Side::kCalled;
    connection.transcript.hello = hello;
    if (hello.purpose.channel) connection.transcript.ticket = tickets_[caller];
    connection.transcript.binding = incoming.stream->binding();
    connection.stage = Stage::kExpectsProof;
    connection.until = Clock::now() + kTimeToIntroduce;
    connection.fresh = fresh_nonce();
    connection.stream = std::move(incoming.stream);
    send_proof(connection, hello.fresh, connection.fresh);
    open_.push_back(std::move(connection));
  }

  void send_proof(const OpenConnection& connection, const HandshakeNonce& challenge,
                  const HandshakeNonce& fresh) const {
    Reply reply;
    reply.kind = Reply::Kind::kProof;
    reply.proof = make_proof(request_.seal, connection.transcript, connection.side, challenge, fresh);
    write_text(*connection.stream, encode_reply(reply));
  }

  // As far as it goes now: what a stream has read ahead is shown by no event. By number, since a lifeline that is
  // established calls for its channels.
  Status advance(std::size_t number) {
    while (open_[number].stream) {
      OpenConnection& connection = open_[number];
      const Result<bool> moved = connection.stage < Stage::kExpectsProof ? greet(connection) : read_reply(connection);
      if (!moved) return moved.error();
      if (!*moved) return {};
    }
    return {};
  }

  // Whether there may be more to do at once.
  Result<bool> greet(OpenConnection& connection) {
    if (connection.stage == Stage::kCalling) {
      if (const int error = call_error(connection.stream->descriptor()); error != 0) {
        const bool gone = error == ECONNREFUSED || error == ECONNRESET;
        return loss_.cannot_reach(
            connection.peer(), {gone ? ErrorCode::kUnavailable : ErrorCode::kDeadlineExceeded, errno_text(error), {}});
      }
      connection.stage = Stage::kNegotiating;
    }
    const StreamResult negotiated = connection.stream->negotiate();
    if (negotiated.kind == StreamResult::Kind::kBlocked) return false;
    if (!negotiated.moved()) {
      EVERSTEP_TRY(not_negotiated(connection, negotiated));
      return false;
    }
    connection.transcript.binding = connection.stream->binding();
    write_text(*connection.stream, encode_hello(connection.hello()));
    connection.stage = Stage::kExpectsProof;
    return true;
  }

  Status not_negotiated(OpenConnection& connection, const StreamResult& result) {
    if (result.reason.starts_with(kOtherTlsKey)) return not_genuine(connection);
    if (result.is_hang_up()) return hung_up_early(connection);
    return loss_.somebody_else_answers(connection.peer(), result.reason);
  }

  Result<bool> read_reply(OpenConnection& connection) {
    std::optional<Reply> reply;
    const StreamResult came = connection.read_reply(reply);
    if (came.kind == StreamResult::Kind::kBlocked) return false;
    if (!came.moved()) {
      EVERSTEP_TRY(ended(connection, came));
      return false;
    }
    EVERSTEP_TRY(reply ? heard(connection, *reply) : misunderstood(connection));
    return true;
  }

  // If it is dead, the next call is refused.
  Status hung_up_early(OpenConnection& connection) {
    if (connection.tries == kMostTries) return loss_.hung_up(connection.peer());
    const auto pause = kPause * ((1 << connection.tries) - 2);  // the second try comes at once
    later_.push_back({connection.peer(), connection.purpose(), connection.tries + 1, Clock::now() + pause});
    connection.stream.reset();
    return {};
  }

  Status ended(OpenConnection& connection, const StreamResult& result) {
    if (connection.side == Side::kCaller) {
      return result.is_hang_up() ? hung_up_early(connection) : Status(loss_.hung_up(connection.peer()));
    }
    forget(connection, "it hung up before it proved who it is");
    return {};
  }

  Status misunderstood(OpenConnection& connection) {
    if (connection.side == Side::kCaller)
      return loss_.somebody_else_answers(connection.peer(), "it does not speak this protocol");
    forget(connection, "it does not speak this protocol");
    return {};
  }

  Status heard(OpenConnection& connection, const Reply& reply) {
    if (reply.kind == Reply::Kind::kRefusal) return refused(connection, reply.refusal);
    if (connection.stage == Stage::kExpectsProof && reply.kind == Reply::Kind::kProof) {
      return examine(connection, reply.proof);
    }
    if (connection.stage == Stage::kExpectsWelcome && reply.kind == Reply::Kind::kWelcome) {
      return welcomed(connection, reply.ticket);
    }
    return misunderstood(connection);
  }

  // A caller has proved nothing yet, so what it says is no reason to give the try up.
  Status refused(OpenConnection& connection, Refusal refusal) {
    if (connection.side == Side::kCalled) {
      forget(connection, "it refuses: " + std::string(to_string(refusal)));
      return {};
    }
    return loss_.refused(connection.peer(), refusal);
  }

  Status examine(OpenConnection& connection, const Proof& proof) {
    const bool is_caller = connection.side == Side::kCaller;
    const Side theirs = is_caller ? Side::kCalled : Side::kCaller;
    const HandshakeNonce& challenge = is_caller ? connection.hello().fresh : connection.fresh;
    if (!is_genuine(request_.seal, connection.transcript, theirs, challenge, proof)) return not_genuine(connection);
    if (is_caller) {
      connection.stage = Stage::kExpectsWelcome;
      send_proof(connection, proof.fresh, {});
      return {};
    }
    if (!is_wanted(connection.peer(), connection.purpose())) {
      log_refusal(connection.peer(), to_string(Refusal::kNotExpected));
      turn_away(std::move(connection.stream), Refusal::kNotExpected);
      return {};
    }
    Reply welcome;
    if (!connection.purpose().channel) welcome.ticket = tickets_[connection.peer()] = fresh_nonce();
    write_text(*connection.stream, encode_reply(welcome));
    establish(connection);
    return {};
  }

  Status not_genuine(OpenConnection& connection) {
    const int peer = connection.peer();
    log_refusal(peer, to_string(Refusal::kBadProof));
    turn_away(std::move(connection.stream), Refusal::kBadProof);
    if (connection.side == Side::kCalled) return {};
    return loss_.lose({peer, How::kRefused}, ErrorCode::kInvalidArgument, "does not have this job's secret",
                      "give all workers of the job the same --secret-file");
  }

  Status welcomed(OpenConnection& connection, const HandshakeNonce& ticket) {
    const int peer = connection.peer();
    const bool is_lifeline = !connection.purpose().channel;
    establish(connection);
    if (!is_lifeline) return {};
    tickets_[peer] = ticket;
    for (int channel = 0; channel < kChannels; ++channel) {
      EVERSTEP_TRY(call(peer, {static_cast<Channel>(channel)}));  // `connection` is gone after this
    }
    return {};
  }

  void establish(OpenConnection& connection) {
    if (!connection.purpose().channel) connection.stream->notice_lost_host();
    place_of(connection.peer(), connection.purpose()) = std::move(connection.stream);
  }

  void forget(OpenConnection& connection, const std::string& why) {
    log_refusal(connection.peer(), why);
    connection.stream.reset();
  }

  void log_refusal(int caller, std::string_view why) const {
    if (!request_.log) return;
    request_.log(
        LogLine("connection_refused").add("worker", me_.worker).add("caller", caller).add("reason", why).text());
  }

  // So that peers need not guess: those who are connected hear who died, or that this worker lives but gave up.
  void tell_of_failure() {
    const std::optional<LostPeer>& lost = loss_.lost();
    const bool death = lost && lost->how == How::kClosed;
    const LifelineWord word{death ? LifelineWord::Kind::kDeath : LifelineWord::Kind::kGaveUp, death ? lost->worker : 0};
    for (PeerStreams& peer : done_) {
      if (!peer.lifeline) continue;
      send_word(*peer.lifeline, word);
      request_.closing.take(std::move(peer.lifeline));
    }
    for (OpenConnection& connection : open_) {
      if (connection.stream && connection.side == Side::kCalled) {
        turn_away(std::move(connection.stream), Refusal::kOver);
      }
    }
    for (IncomingCall& incoming : inbox_.take()) turn_away(std::move(incoming.stream), Refusal::kOver);
  }

  static constexpr std::int64_t kLongestStepMs = 200;  // how exact the patience with callers is
  static constexpr std::chrono::milliseconds kKnockAfter{200};
  static constexpr std::chrono::milliseconds kKnockEvery{1000};
  static constexpr int kMostTries = 9;
  static constexpr std::chrono::milliseconds kPause{2};
  static constexpr std::chrono::milliseconds kQueuePause{10};

  CallInbox& inbox_;
  const HandshakeRequest& request_;
  ConnectionEnd me_;
  MemberLoss loss_;
  std::vector<OpenConnection> open_;
  std::vector<LaterCall> later_;
  Knocks knocks_;
  Clock::time_point knock_at_;
  std::vector<PeerStreams> done_;
  std::vector<HandshakeNonce> tickets_;  // what opens the channels of each peer's lifeline
};

}  // namespace

HandshakeOutcome shake_hands(CallInbox& inbox, const HandshakeRequest& request, std::chrono::milliseconds timeout) {
  return Handshake(inbox, request).run(timeout);
}

}  // namespace everstep::trainer
