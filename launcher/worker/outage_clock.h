#pragma once

#include <optional>

#include "base/result.h"
#include "base/tick.h"
#include "launcher/job/elastic_options.h"

namespace everstep::launcher {

// How long etcd has been away, and when that is too long. An outage begins with the first call that fails after one
// that was answered, so that a process that slept has seen none. Pure: whoever calls etcd tells what came of it.
//
// Too long is --etcd-outage-limit, but never less than a lease: shorter troubles are none. A run at its end, which has
// nothing left to do but to be committed, waits kPatienceAtEnd at most.
class OutageClock {
 public:
  static constexpr Tick kPatienceAtEnd = 10 * kTicksPerSecond;

  explicit OutageClock(const MembershipOptions& options);

  void answered() { since_.reset(); }
  void failed(Tick now);
  // Whether all steps are made, or somebody asked this process or the job to end.
  void set_at_end(bool is_at_end, Tick now);

  bool is_away() const { return since_.has_value(); }
  bool is_too_long() const;

  // What ends the run then: kUnavailable.
  Error error() const;

 private:
  const Tick limit_;
  std::optional<Tick> since_;
  Tick last_failure_ = 0;
  std::optional<Tick> at_end_since_;
};

}  // namespace everstep::launcher
