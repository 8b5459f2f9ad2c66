#pragma once

#include "base/tick.h"
#include "scheduler/op.h"

namespace everstep::trainer {

// How long one stage computes on one worker, between two exchanges.
class StageClock {
 public:
  void add(scheduler::OpKind kind, Tick time) {
    (kind == scheduler::OpKind::kForward ? forwards_ : backwards_).add(time);
  }

  // The mean time of a forward and a backward together; 0: not both were seen. Begins anew.
  Tick take() {
    const Tick time = forwards_.ops == 0 || backwards_.ops == 0 ? 0 : forwards_.mean() + backwards_.mean();
    *this = {};
    return time;
  }

 private:
  struct Sum {
    Tick time = 0;
    int ops = 0;

    void add(Tick one) {
      time += one;
      ++ops;
    }
    Tick mean() const { return time / ops; }
  };

  Sum forwards_;
  Sum backwards_;
};

}  // namespace everstep::trainer
