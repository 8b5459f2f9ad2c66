#pragma once

#include <map>

#include "base/tick.h"
#include "elastic/brain/situation.h"

namespace everstep::elastic {

// How slow the workers of a job are believed to be: what a leader plans by when it rebalances. A belief rests on the
// medians of several updates and changes only when they tell something clearly different, so that it never flaps. A
// worker that trains is measured all the time. A spare is not, nor one with next to nothing to do: what was believed of
// it is forgotten after `trust`, so that it is tried again, and after twice that the next time, and so on, until it is
// as fast as the others.
class SpeedBook {
 public:
  explicit SpeedBook(Tick trust) : trust_(trust) {}

  // Takes in what the view shows, as often as one likes.
  void look(const Situation& seen, Tick now);

  // 1: as usual, or not known.
  double slowness(const WorkerId& id) const;
  // Those that are slower than usual.
  std::map<WorkerId, double> slow() const;

 private:
  struct Belief {
    double slowness = 1;
    bool is_measured = true;  // if it trains
    Tick measured_at = 0;
    int tries = 0;  // how often it was forgotten
  };

  void learn(const ProgressRecord& progress, const std::vector<WorkerId>& workers);

  Tick trust_;
  std::map<WorkerId, Belief> beliefs_;
};

}  // namespace everstep::elastic
