#pragma once

#include "base/tick.h"
#include "scheduler/op.h"

namespace everstep::trainer {

// How long one stage computes on one worker, between two exchanges.
class StageClock {
 public:
  void add(scheduler::OpKind kind, Tick time) {
    Sum& sum = kind == scheduler::OpKind::kForward    ? forwards_
               : kind == scheduler::OpKind::kBackward ? backwards_
                                                      : weights_;
    sum.add(time);
  }

  // The mean time of a forward and both halves of a backward together; 0: not all were seen. Begins anew.
  Tick take() {
    const bool is_known = forwards_.ops > 0 && backwards_.ops > 0 && weights_.ops > 0;
    const Tick time = is_known ? forwards_.mean() + backwards_.mean() + weights_.mean() : 0;
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
  Sum weights_;
};

}  // namespace everstep::trainer
