#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "trainer/ucx/lifeline/file_descriptor.h"
#include "trainer/ucx/lifeline/handshake_message.h"
#include "trainer/ucx/lifeline/lifeline_socket.h"

namespace everstep::trainer {

inline constexpr std::size_t kParkedCalls = 256;
inline constexpr std::chrono::seconds kParkedTime{60};
inline constexpr std::chrono::seconds kPatience{5};  // with a caller that has begun to introduce itself

// A caller that has said who it wants to be. Nothing of it is proved.
struct IncomingCall {
  FileDescriptor socket;
  CallerHello hello;
};

// Tells a caller why, and hangs up.
void turn_away(FileDescriptor socket, Refusal refusal);

// Where the calls for one try arrive. Made by LifelinePort::open, for one thread.
class CallInbox {
 public:
  explicit CallInbox(const LifelineAttempt& attempt);
  ~CallInbox();  // turns away whom nobody took

  CallInbox(const CallInbox&) = delete;
  CallInbox& operator=(const CallInbox&) = delete;

  const LifelineAttempt& attempt() const { return attempt_; }
  int descriptor() const { return wake_.get(); }  // readable when there is a call, or the try is given up
  std::vector<IncomingCall> take();
  bool is_given_up();

 private:
  friend class LifelinePort;

  void put(IncomingCall call);
  void give_up();

  LifelineAttempt attempt_;
  FileDescriptor wake_;
  std::mutex mutex_;  // guards all below
  std::vector<IncomingCall> calls_;
  bool given_up_ = false;
};

// Answers all calls of a worker's port, in a thread of its own that sleeps while nobody calls: it listens who they
// want to be, and hands them to the try they belong to, parks them or turns them away.
class LifelinePort {
 public:
  LifelinePort(FileDescriptor listening, LogHook log);
  ~LifelinePort();

  LifelinePort(const LifelinePort&) = delete;
  LifelinePort& operator=(const LifelinePort&) = delete;

  // From now on calls for this try are let in. kCancelled if it was given up, kStaleGeneration if it is over.
  Result<std::shared_ptr<CallInbox>> open(const LifelineAttempt& attempt);

  // The try is over, well or not.
  void close(const CallInbox& inbox);

  void give_up(Generation generation, std::uint32_t nonce);

  std::int64_t fenced() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Try = std::pair<Generation, std::uint32_t>;

  struct Stranger {
    FileDescriptor socket;
    Clock::time_point until;
    std::array<std::byte, kHelloBytes> inbox{};
    std::size_t received = 0;
  };
  struct Parked {
    IncomingCall call;
    Clock::time_point until;
  };

  void serve();
  void wait_for_calls();
  void accept_all();
  void listen_to(Stranger& stranger);
  void let_go(Stranger& stranger, const std::string& why);
  void introduce(IncomingCall call);
  void place(IncomingCall call, Clock::time_point until);
  std::optional<Refusal> objection_to(const LifelineAttempt& attempt) const;
  void refuse(IncomingCall call, Refusal refusal);
  void judge_parked_again();

  FileDescriptor listening_;
  FileDescriptor wake_;
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
