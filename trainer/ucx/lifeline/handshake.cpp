#include "trainer/ucx/lifeline/handshake.h"

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/log_line.h"
#include "trainer/ucx/lifeline/lifelines.h"

namespace everstep::trainer {
namespace {

using Clock = std::chrono::steady_clock;
using How = LostPeer::How;

HandshakeNonce fresh_nonce() {
  HandshakeNonce nonce{};
  EVERSTEP_CHECK(::getrandom(nonce.data(), sizeof nonce, 0) == sizeof nonce, "getrandom failed");
  return nonce;
}

// The other side's refusal, as what this side has to do about it.
ErrorCode code_of(Refusal refusal) {
  if (refusal == Refusal::kBadProof) return ErrorCode::kInvalidArgument;
  return refusal == Refusal::kTooEarly ? ErrorCode::kDeadlineExceeded : ErrorCode::kStaleGeneration;
}

struct Connection {
  enum class Stage : std::uint8_t { kCalling, kExpectsProof, kExpectsWelcome };

  FileDescriptor socket;
  Side side = Side::kCaller;  // this one's
  CallerHello hello{};
  Stage stage = Stage::kCalling;
  Clock::time_point until{};  // kCalled: how long a caller may take
  HandshakeNonce fresh{};     // kCalled: what this side made up
  std::string inbox{};
  std::string ucx_address{};  // the peer's

  int peer() const { return side == Side::kCaller ? hello.called.worker : hello.caller.worker; }
};

// Nobody calls the last worker, and one that died before it could call would be waited for. A call without a word finds
// out whether there is still somebody at its address.
struct Knock {
  int worker = 0;
  FileDescriptor socket;
};

class Handshake {
 public:
  Handshake(CallInbox& inbox, const HandshakeRequest& request)
      : inbox_(inbox), request_(request), me_{request.worker, request.members[request.worker].id} {
    done_.sockets.resize(request.members.size());
    done_.ucx_addresses.resize(request.members.size());
    done_.ucx_addresses[me_.worker] = request.ucx_address;
  }

  HandshakeOutcome run(std::chrono::milliseconds timeout) {
    if (const Status status = connect(timeout); !status) {
      tell_of_failure();
      return {status.error(), lost_};
    }
    return {std::move(done_)};
  }

 private:
  Status connect(std::chrono::milliseconds timeout) {
    const Clock::time_point deadline = Clock::now() + timeout;
    for (int worker = 0; worker < me_.worker; ++worker) EVERSTEP_TRY(call(worker));
    knock_at_ = Clock::now() + kKnockAfter;
    while (const std::optional<int> missing = first_missing()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
      if (left <= 0) {
        return lose({*missing, How::kSilent}, ErrorCode::kDeadlineExceeded,
                    "did not connect within " + std::to_string(timeout.count()) + " ms", "is it running?");
      }
      EVERSTEP_TRY(step(static_cast<int>(std::min<std::int64_t>(left, kLongestStepMs))));
      if (Clock::now() >= knock_at_) knock();
      EVERSTEP_TRY(hear_knocks());
    }
    return {};
  }

  void knock() {
    knock_at_ = Clock::now() + kKnockEvery;
    for (int worker = me_.worker + 1; worker < static_cast<int>(done_.sockets.size()); ++worker) {
      if (done_.sockets[worker].is_open()) continue;
      Result<FileDescriptor> socket = call_lifeline(request_.members[worker].address);
      if (socket) knocks_.push_back({worker, std::move(socket).value()});
    }
  }

  Status hear_knocks() {
    for (Knock& knock : knocks_) {
      pollfd decided{knock.socket.get(), POLLOUT, 0};
      if (::poll(&decided, 1, 0) <= 0) continue;
      const int error = call_error(knock.socket);
      if (error == ECONNREFUSED) return cannot_reach(knock.worker, errno_text(error), How::kClosed);
      knock.socket.reset();
    }
    std::erase_if(knocks_, [](const Knock& knock) { return !knock.socket.is_open(); });
    return {};
  }

  std::optional<int> first_missing() const {
    for (int worker = 0; worker < static_cast<int>(done_.sockets.size()); ++worker) {
      if (worker != me_.worker && !done_.sockets[worker].is_open()) return worker;
    }
    return std::nullopt;
  }

  std::string name_of(int worker) const {
    const std::string& name = request_.members[worker].name;
    return name.empty() ? "worker " + std::to_string(worker) : name;
  }

  Error lose(const LostPeer& peer, ErrorCode code, const std::string& what, const std::string& hint) {
    lost_ = peer;
    return {code, name_of(peer.worker) + " " + what, hint};
  }

  Error cannot_reach(int worker, const std::string& why, How how) {
    return lose({worker, how}, how == How::kSilent ? ErrorCode::kDeadlineExceeded : ErrorCode::kUnavailable,
                "cannot be reached at " + to_text(request_.members[worker].address) + ": " + why,
                "its log says why; if it runs, this host does not reach that address: see its --bind and --advertise");
  }

  Status call(int worker) {
    Result<FileDescriptor> socket = call_lifeline(request_.members[worker].address);
    if (!socket) return cannot_reach(worker, socket.error().message, How::kSilent);
    Connection connection;
    connection.socket = std::move(socket).value();
    connection.hello = {inbox_.attempt(), me_, {worker, request_.members[worker].id}, fresh_nonce()};
    open_.push_back(std::move(connection));
    return {};
  }

  Status step(int timeout_ms) {
    std::vector<pollfd> polled{{inbox_.descriptor(), POLLIN, 0}};
    for (const Connection& connection : open_) {
      const bool calling = connection.stage == Connection::Stage::kCalling;
      polled.push_back({connection.socket.get(), static_cast<short>(calling ? POLLOUT : POLLIN), 0});
    }
    for (const FileDescriptor& socket : done_.sockets) polled.push_back({socket.get(), POLLRDHUP, 0});
    ::poll(polled.data(), polled.size(), timeout_ms);
    if (inbox_.is_given_up()) return Error{ErrorCode::kCancelled, "the try to connect was given up", {}};

    const std::size_t open_count = open_.size();
    for (std::size_t worker = 0; worker < done_.sockets.size(); ++worker) {
      if (polled[1 + open_count + worker].revents != 0) return hung_up(static_cast<int>(worker));
    }
    for (std::size_t i = 0; i < open_count; ++i) {
      if (polled[1 + i].revents != 0) {
        EVERSTEP_TRY(advance(open_[i]));
      } else if (open_[i].side == Side::kCalled && open_[i].until <= Clock::now()) {
        forget(open_[i], "it began a handshake and fell silent");
      }
    }
    for (IncomingCall& incoming : inbox_.take()) answer(std::move(incoming));
    std::erase_if(open_, [](const Connection& connection) { return !connection.socket.is_open(); });
    return {};
  }

  // A peer that was connected already ends this try. Its last word says why; without one it is dead.
  Error hung_up(int worker) {
    WordBytes bytes{};
    std::optional<LifelineWord> last;
    while (::recv(done_.sockets[worker].get(), bytes.data(), bytes.size(), MSG_DONTWAIT) == kWordBytes) {
      last = decode_word(bytes, static_cast<int>(done_.sockets.size()));
    }
    done_.sockets[worker].reset();
    if (last && last->kind == LifelineWord::Kind::kGoodbye) {
      return lose({worker, How::kRefused}, ErrorCode::kUnavailable, "gave the try to connect up", "its log says why");
    }
    if (last && last->kind == LifelineWord::Kind::kDeath) {
      return lose({last->about, How::kClosed}, ErrorCode::kUnavailable,
                  "died or cannot be reached, as " + name_of(worker) + " says", "their logs say why");
    }
    return lose({worker, How::kClosed}, ErrorCode::kUnavailable, "died", "its log says why");
  }

  void answer(IncomingCall incoming) {
    const CallerHello& hello = incoming.hello;
    const int caller = hello.caller.worker;
    const bool known = caller > me_.worker && caller < static_cast<int>(request_.members.size()) &&
                       hello.caller.id == request_.members[caller].id && hello.called == me_;
    if (!known || done_.sockets[caller].is_open()) {
      log_refusal(caller, to_string(Refusal::kNotExpected));
      return turn_away(std::move(incoming.socket), Refusal::kNotExpected);
    }
    Connection connection;
    connection.side = Side::kCalled;
    connection.hello = hello;
    connection.stage = Connection::Stage::kExpectsProof;
    connection.until = Clock::now() + kPatience;
    connection.fresh = fresh_nonce();
    connection.socket = std::move(incoming.socket);
    send_proof(connection, hello.fresh, connection.fresh);
    open_.push_back(std::move(connection));
  }

  void send_proof(const Connection& connection, const HandshakeNonce& challenge, const HandshakeNonce& fresh) const {
    Reply reply;
    reply.kind = Reply::Kind::kProof;
    reply.proof = make_proof(request_.seal, connection.hello, connection.side, challenge, fresh, request_.ucx_address);
    send(connection, encode_reply(reply));
  }

  // A fresh connection takes some hundred bytes at once; if it is broken, the next read says so.
  static void send(const Connection& connection, const std::string& bytes) {
    ::send(connection.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  Status advance(Connection& connection) {
    if (connection.stage == Connection::Stage::kCalling) return greet(connection);
    std::string bytes(bytes_wanted(connection), '\0');
    const ssize_t count = ::recv(connection.socket.get(), bytes.data(), bytes.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (count <= 0) return ended(connection);
    connection.inbox += bytes.substr(0, static_cast<std::size_t>(count));
    if (connection.inbox.size() < kReplyHeadBytes || bytes_wanted(connection) > 0) return {};
    const std::optional<Reply> reply = decode_reply(std::as_bytes(std::span(connection.inbox)));
    connection.inbox.clear();
    return reply ? heard(connection, *reply) : misunderstood(connection);
  }

  static std::span<const std::byte> head_of(const Connection& connection) {
    return std::as_bytes(std::span(connection.inbox)).first(kReplyHeadBytes);
  }

  // Until the reply is complete, or known to be none. Never more than that: what follows belongs to the lifeline.
  static std::size_t bytes_wanted(const Connection& connection) {
    if (connection.inbox.size() < kReplyHeadBytes) return kReplyHeadBytes - connection.inbox.size();
    const std::optional<std::size_t> body = reply_body_bytes(head_of(connection));
    return body ? kReplyHeadBytes + *body - connection.inbox.size() : 0;
  }

  Status greet(Connection& connection) {
    if (const int error = call_error(connection.socket); error != 0) {
      const bool gone = error == ECONNREFUSED || error == ECONNRESET;
      return cannot_reach(connection.peer(), errno_text(error), gone ? How::kClosed : How::kSilent);
    }
    send(connection, encode_hello(connection.hello));
    connection.stage = Connection::Stage::kExpectsProof;
    return {};
  }

  Status ended(Connection& connection) {
    if (connection.side == Side::kCaller) {
      return lose({connection.peer(), How::kClosed}, ErrorCode::kUnavailable, "hung up before it said who it is",
                  "its log says why");
    }
    forget(connection, "it hung up before it proved who it is");
    return {};
  }

  Status misunderstood(Connection& connection) {
    if (connection.side == Side::kCaller) {
      return lose({connection.peer(), How::kRefused}, ErrorCode::kStaleGeneration,
                  "is not what answers at " + to_text(request_.members[connection.peer()].address),
                  "does another program use this address?");
    }
    forget(connection, "it does not speak this protocol");
    return {};
  }

  Status heard(Connection& connection, const Reply& reply) {
    if (reply.kind == Reply::Kind::kRefusal) return refused(connection, reply.refusal);
    if (connection.stage == Connection::Stage::kExpectsProof && reply.kind == Reply::Kind::kProof) {
      return examine(connection, reply.proof);
    }
    if (connection.stage == Connection::Stage::kExpectsWelcome && reply.kind == Reply::Kind::kWelcome) {
      establish(connection);
      return {};
    }
    return misunderstood(connection);
  }

  // A caller has proved nothing yet, so what it says is no reason to give the try up.
  Status refused(Connection& connection, Refusal refusal) {
    if (connection.side == Side::kCalled) {
      forget(connection, "it refuses: " + std::string(to_string(refusal)));
      return {};
    }
    const How how = refusal == Refusal::kTooEarly ? How::kSilent : How::kRefused;
    return lose({connection.peer(), how}, code_of(refusal),
                "refused this worker's connection: " + std::string(to_string(refusal)), "its log says more");
  }

  Status examine(Connection& connection, const Proof& proof) {
    const bool is_caller = connection.side == Side::kCaller;
    const Side theirs = is_caller ? Side::kCalled : Side::kCaller;
    const HandshakeNonce& challenge = is_caller ? connection.hello.fresh : connection.fresh;
    if (!is_genuine(request_.seal, connection.hello, theirs, challenge, proof)) return not_genuine(connection);
    connection.ucx_address = proof.ucx_address;
    if (is_caller) {
      connection.stage = Connection::Stage::kExpectsWelcome;
      send_proof(connection, proof.fresh, {});
    } else if (done_.sockets[connection.peer()].is_open()) {
      log_refusal(connection.peer(), to_string(Refusal::kNotExpected));
      turn_away(std::move(connection.socket), Refusal::kNotExpected);
    } else {
      send(connection, encode_reply({}));
      establish(connection);
    }
    return {};
  }

  Status not_genuine(Connection& connection) {
    const int peer = connection.peer();
    log_refusal(peer, to_string(Refusal::kBadProof));
    turn_away(std::move(connection.socket), Refusal::kBadProof);
    if (connection.side == Side::kCalled) return {};
    return lose({peer, How::kRefused}, ErrorCode::kInvalidArgument, "does not have this job's secret",
                "give all workers of the job the same --secret-file");
  }

  void establish(Connection& connection) {
    notice_lost_host(connection.socket);
    done_.ucx_addresses[connection.peer()] = std::move(connection.ucx_address);
    done_.sockets[connection.peer()] = std::move(connection.socket);
  }

  void forget(Connection& connection, const std::string& why) {
    log_refusal(connection.peer(), why);
    connection.socket.reset();
  }

  void log_refusal(int caller, std::string_view why) const {
    if (!request_.log) return;
    request_.log(
        LogLine("connection_refused").add("worker", me_.worker).add("caller", caller).add("reason", why).text());
  }

  // So that peers need not guess: those who are connected hear who died, or that this worker lives but gave up.
  void tell_of_failure() {
    const bool death = lost_ && lost_->how == How::kClosed;
    const LifelineWord word{death ? LifelineWord::Kind::kDeath : LifelineWord::Kind::kGoodbye,
                            death ? lost_->worker : 0};
    for (const FileDescriptor& socket : done_.sockets) send_word(socket, word);
    for (Connection& connection : open_) {
      const bool is_caller = connection.side == Side::kCaller;
      if (connection.socket.is_open() && !is_caller) turn_away(std::move(connection.socket), Refusal::kOver);
    }
    for (IncomingCall& incoming : inbox_.take()) turn_away(std::move(incoming.socket), Refusal::kOver);
  }

  static constexpr std::int64_t kLongestStepMs = 200;  // how exact the patience with callers is
  static constexpr std::chrono::milliseconds kKnockAfter{200};
  static constexpr std::chrono::milliseconds kKnockEvery{1000};

  CallInbox& inbox_;
  const HandshakeRequest& request_;
  LifelineEnd me_;
  std::vector<Connection> open_;
  std::vector<Knock> knocks_;
  Clock::time_point knock_at_;
  ConnectedPeers done_;
  std::optional<LostPeer> lost_;
};

}  // namespace

HandshakeOutcome shake_hands(CallInbox& inbox, const HandshakeRequest& request, std::chrono::milliseconds timeout) {
  return Handshake(inbox, request).run(timeout);
}

}  // namespace everstep::trainer
