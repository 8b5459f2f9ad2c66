#pragma once

#include <optional>

#include "base/result.h"
#include "elastic/keys.h"
#include "elastic/view.h"

namespace everstep::elastic {

// The newest generation and the newest HEAD that a process has seen, in all its incarnations. Both only grow. One that
// is not newer but was written later, or that is gone, is the work of somebody who may write to the store and is no
// worker: an old value played again, or a deletion. To go on would be to train in two generations at once, or to begin
// a second chain of checkpoints.
class HighWater {
 public:
  // kDataLoss says which of the two went back. What is forged, or only missing in the view, says nothing.
  Status look(const View& view, const Keys& keys);

 private:
  struct Mark {
    std::int64_t number = -1;  // −1: none was seen
    Revision modified = 0;
  };

  Mark generation_;
  Mark head_;
};

}  // namespace everstep::elastic
