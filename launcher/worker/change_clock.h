#pragma once

#include <algorithm>
#include <mutex>

#include "base/tick.h"
#include "launcher/worker/control_message.h"

namespace everstep::launcher {

// When the steps of a change of membership happened, on this worker. Marks may come from any thread.
class ChangeClock {
 public:
  // The generation before has ended here; `last_op` is when its last op did, if it did not end in an orderly way.
  void ended(Tick now, Tick last_op) {
    const std::scoped_lock lock(mutex_);
    times_ = {};
    times_.last_op = last_op == 0 ? now : last_op;
    times_.ended = now;
  }
  // A generation is open. Whoever stood by in the one before has not waited since the one it trained in last; whoever
  // was to train there and never came to it waits still.
  void seen(Tick now, bool stood_by) {
    const std::scoped_lock lock(mutex_);
    if (stood_by) times_.ended = times_.last_op = 0;
    times_.seen = now;
  }
  void connected(Tick now) { mark(times_.connected, now); }
  void moved(Tick now) { mark(times_.moved, now); }
  void updated(Tick now) { mark(times_.updated, now); }

  // Meant after the first update.
  GenerationChanged::Phases phases() const {
    const std::scoped_lock lock(mutex_);
    const Tick ended = times_.ended == 0 ? times_.seen : times_.ended;  // a worker that came in new waited for nobody
    const Tick connected = std::max(times_.connected, times_.seen);
    return {between(times_.last_op, times_.ended), between(ended, times_.seen), between(times_.seen, connected),
            between(connected, times_.moved), between(times_.moved, times_.updated)};
  }

  // Without training, in seconds.
  double stall() const {
    const std::scoped_lock lock(mutex_);
    return times_.ended == 0 ? 0 : between(times_.ended, times_.moved);
  }

 private:
  struct Times {
    Tick last_op = 0;
    Tick ended = 0;
    Tick seen = 0;
    Tick connected = 0;
    Tick moved = 0;
    Tick updated = 0;
  };

  static double between(Tick begin, Tick end) { return begin == 0 || end <= begin ? 0 : to_seconds(end - begin); }

  void mark(Tick& time, Tick now) {
    const std::scoped_lock lock(mutex_);
    time = now;
  }

  mutable std::mutex mutex_;
  Times times_;
};

}  // namespace everstep::launcher
