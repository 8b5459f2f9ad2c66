#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "launcher/worker/control_message.h"

namespace everstep::launcher {

// One line about a change of membership:
//   event=generation n=3 plan="amdp D=2 P=1 W=1" workers=3 reason="w2 died" from=checkpoint step=20 redone=14
//   detect=0.004s agree=0.012s connect=0.020s move=0.031s first_step=0.110s stall=0.18s
std::string generation_event(const GenerationChanged& change);

// "gen 3  amdp D=2 P=1 W=1  3 workers", for the progress line.
std::string generation_text(const GenerationChanged& change);

// What membership changes cost a run.
struct ElasticCounts {
  std::int64_t generations = 0;
  std::int64_t changes = 0;  // generations but the first
  std::int64_t redone = 0;   // minibatches
  double goodput = 1;        // useful work over what the same time would have had room for without changes

  bool operator==(const ElasticCounts&) const = default;
};

// All local workers of an elastic job tell the same story; this takes each part of it once, and forgets nothing that
// happened again: a step that is redone in a later generation is news.
class GenerationTally {
 public:
  // Whether it is news. Those of a generation that is over are not.
  bool take(const ElasticStep& step);
  bool take(const GenerationChanged& change);
  // Of the step that was news last.
  bool take(const Validation& validation);

  // After so many minibatches of progress in so much time.
  ElasticCounts counts(std::int64_t minibatches, double seconds) const;

 private:
  std::pair<Generation, std::int64_t> last_step_{{-1}, 0};
  bool is_validated_ = false;
  Generation last_generation_{-1};
  std::int64_t generations_ = 0;
  std::int64_t redone_ = 0;
  double stalled_ = 0;
};

}  // namespace everstep::launcher
