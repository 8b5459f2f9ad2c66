#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "trainer/socket/byte_stream.h"
#include "trainer/socket/event_flag.h"
#include "trainer/socket/file_descriptor.h"
#include "trainer/socket/handshake_message.h"
#include "trainer/socket/log_hook.h"

namespace everstep::trainer {

// One worker gets about so many calls at once when a job of fifty connects: a lifeline and seven channels from each.
inline constexpr std::size_t kMostStrangers = 256;
inline constexpr std::size_t kParkedCalls = 256;
inline constexpr std::chrono::seconds kParkedTime{60};
inline constexpr std::chrono::seconds kTimeToIntroduce{5};  // what a caller may take to say and prove who it is

// A caller that has said who it wants to be. Beyond what its kind of stream makes sure of, nothing of it is proved.
struct IncomingCall {
  std::unique_ptr<ByteStream> stream;
  CallerHello hello;
};

// Tells a caller why, and hangs up.
void turn_away(std::unique_ptr<ByteStream> stream, Refusal refusal);

// A socket that is called, and what makes a stream of a caller's; an error turns the caller away.
struct Entrance {
  FileDescriptor socket;
  std::function<Result<std::unique_ptr<ByteStream>>(FileDescriptor)> admit;
};

// Where the calls for one try arrive. Made by CallPort::open, for one thread.
class CallInbox {
 public:
  explicit CallInbox(const PeerAttempt& attempt);
  ~CallInbox();  // turns away whom nobody took

  CallInbox(const CallInbox&) = delete;
  CallInbox& operator=(const CallInbox&) = delete;

  const PeerAttempt& attempt() const { return attempt_; }
  int descriptor() const { return wake_.descriptor(); }  // readable when there is a call, or the try is given up
  std::vector<IncomingCall> take();
  bool is_given_up();

 private:
  friend class CallPort;

  void put(IncomingCall call);
  void give_up();

  PeerAttempt attempt_;
  EventFlag wake_;
  std::mutex mutex_;  // guards all below
  std::vector<IncomingCall> calls_;
  bool given_up_ = false;
};

// Answers all calls of a worker, in a thread of its own that sleeps while nobody calls: it listens who they want to be,
// and hands them to the try they belong to, parks them or turns them away. Whoever has not said who it is within
// kTimeToIntroduce has to go, and the oldest of kMostStrangers when another one comes, silent ones first. When
// more than kParkedCalls are parked, the IP address that most of them come from loses its oldest one: nothing is proved
// of them yet, and whoever calls without end shall not push others out.
class CallPort {
 public:
  CallPort(std::vector<Entrance> entrances, LogHook log);
  ~CallPort();

  CallPort(const CallPort&) = delete;
  CallPort& operator=(const CallPort&) = delete;

  // From now on calls for this try are let in. kCancelled if it was given up, kStaleGeneration if it is over.
  Result<std::shared_ptr<CallInbox>> open(const PeerAttempt& attempt);

  // The try is over, well or not.
  void close(const CallInbox& inbox);

  void give_up(Generation generation, std::uint32_t nonce);

  std::int64_t fenced() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Try = std::pair<Generation, std::uint32_t>;

  struct Stranger {
    std::unique_ptr<ByteStream> stream;  // none: it has to go
    Clock::time_point until;
    bool has_spoken = false;
    bool is_negotiated = false;
    std::array<std::byte, kHelloBytes> inbox{};
    std::size_t received = 0;
  };
  struct Parked {
    IncomingCall call;
    std::string from;  // the caller's IP address
    Clock::time_point until;
  };

  void serve();
  void wait_for_calls();
  void accept_some(const Entrance& entrance);
  void make_room();
  void listen_to(Stranger& stranger);
  void let_go(Stranger& stranger, const std::string& why);
  void log_refusal(const std::string& why) const;
  void introduce(IncomingCall call);
  void place(Parked parked);
  std::optional<Refusal> objection_to(const PeerAttempt& attempt) const;
  void refuse(IncomingCall call, Refusal refusal);
  void judge_parked_again();
  std::vector<Parked> unpark_some();

  std::vector<Entrance> entrances_;
  EventFlag wake_;
  LogHook log_;
  std::vector<Stranger> strangers_;  // the thread's own
  bool accepting_ = true;            // the thread's own; not while descriptors are short

  mutable std::mutex mutex_;  // guards all below
  std::optional<std::uint64_t> lineage_;
  Generation newest_{};
  std::set<Try> over_;
  std::set<Try> given_up_;
  std::vector<std::shared_ptr<CallInbox>> open_;
  std::deque<Parked> parked_;
  std::int64_t fenced_ = 0;
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace everstep::trainer
