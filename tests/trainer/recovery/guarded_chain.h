#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/trainer/recovery/mortal_transport.h"
#include "tests/trainer/recovery/trained_state.h"
#include "trainer/loop/train_loop.h"
#include "trainer/recovery/state_copies.h"
#include "trainer/recovery/state_transfer.h"

namespace everstep::trainer {

// One generation of a chain. Workers have names that they keep.
struct GuardedGeneration {
  scheduler::ScheduleKind kind = scheduler::ScheduleKind::kOneFOneB;
  int depth = 1;
  int width = 1;
  std::vector<int> workers;           // by place in the plan
  int redundancy = 1;                 // guards of every stage, in addition to its owners
  std::vector<int> donors = {};       // of the generation before, that only hand over
  std::map<int, CallTest> dies = {};  // by name: where it does; every one of them is gone when the generation ends
  bool stops_at_once = false;         // is told before it starts to stop after its first super-round
  int pipelines = 0;                  // in clockwork; 0: as many as usual
  int lag = 0;
  int provisional = 0;
};

inline CallTest at_call(std::int64_t number) {
  return [number](const TransportCall& call) { return call.number == number; };
}

// The `nth` frame of this kind that it sends from that window (of copies: version) on.
CallTest at_send(FrameKind kind, std::int64_t window, int nth = 0);

class GuardedChain;

// The same, but somebody of it dies at any of its calls to the transport. `undisturbed` has run it, and knows how many
// those are.
GuardedGeneration with_a_death(GuardedGeneration generation, const GuardedChain& undisturbed, std::uint64_t seed);

std::vector<int> left_of(const GuardedGeneration& generation);

// Which minibatch of these ranges somebody of the last generation ran; empty: nobody ran any.
std::string run_again(const GuardedChain& chain, const std::vector<WindowHistory>& ranges);

// Generations that follow each other: each trains on threads until it ends or somebody dies, and the next starts from
// the copies in the memory of those who are left.
class GuardedChain {
 public:
  explicit GuardedChain(TrainOptions options);

  // What one worker of the last generation had when it ended.
  struct Member {
    std::shared_ptr<StateCopies> copies;
    Status ended;
    bool died = false;                            // on the way; others that are gone went after the end
    std::int64_t calls = 0;                       // to its transport, while it trained
    std::int64_t updates = 0;                     // the newest that it made: all had met at its exchange
    std::vector<WindowHistory> uncommitted = {};  // what it handed to its sink, which commits nothing
    std::optional<EndState> sums = {};            // if its group stopped by itself
    std::set<std::int64_t> ran = {};              // positions of its forwards
  };

  // Runs one generation from the origin. The origin is then the newest version that those who are left have in full,
  // with the sums that a group kept of the window that follows, if one did: an error says that there is none, or that
  // somebody failed for another reason than a death.
  Status run(const GuardedGeneration& next);

  // The origin, and how it came to be.
  Version version() const { return version_; }
  Result<TrainedState> state() const;
  std::vector<WindowHistory> history() const;
  // Ranges of the window at the origin that a group kept.
  std::vector<WindowHistory> ranges_in_sums() const;
  // Re-runs that in one process and compares every bit. Empty, or the first difference in words.
  std::string difference_from_reference() const;

  const std::map<int, Member>& members() const { return members_; }
  std::int64_t newest_update() const;  // that anybody made in the last generation, dead or alive; 0: nobody made any
  const TrainOptions& options() const { return options_; }
  std::int64_t received_bytes() const { return received_bytes_; }

  // Between the workers of one generation; threads' own, unless set.
  std::function<std::vector<std::unique_ptr<Transport>>(int workers)> make_transports;

  std::set<std::int64_t> poisoned;  // positions whose gradients are not finite

  // Others than the product's, to prove that a mistake would be noticed.
  std::function<Result<TrainResult>(const TrainOptions&, const DataSource&, Transport&, const TrainHooks&)> train_with;
  std::function<void(int name, MortalTransport&)> change_transport;
  std::function<void(EndState& sums)> change_sums;

 private:
  class Run;
  // A generation that is over, and what its members have: `dies` names all who are gone by now.
  struct Past {
    GuardedGeneration generation;
    std::map<int, Member> members;  // by name
  };
  struct Origin {
    Past past;                          // where it comes from
    GuardedGeneration generation;       // whose shape the copies have
    std::map<int, CopiedState> copies;  // by name
    std::map<int, EndState> sums;       // by name, if a group kept its sums: `generation` is then that group alone
  };

  TrainOptions options_under(const GuardedGeneration& next) const;
  TransferRequest change_to(const GuardedGeneration& next) const;
  Status choose_origin(const GuardedGeneration& last);
  bool take_newest_origin(const Past& past);
  void take_origin(const Past& past, Version version);
  bool covers(const Past& past, Version version) const;
  void take_sums_of_a_group();
  std::vector<WindowHistory> untold(const Member& member, const ResumePoint& resume) const;

  TrainOptions options_;
  std::unique_ptr<DataSource> data_;
  Generation generation_;
  std::optional<Origin> origin_;
  Version version_;
  std::map<int, Member> members_;
  std::map<std::int64_t, scheduler::Plan> plans_;
  std::int64_t received_bytes_ = 0;
};

}  // namespace everstep::trainer
