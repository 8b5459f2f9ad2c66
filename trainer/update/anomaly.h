#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "scheduler/schedule.h"
#include "trainer/model/buffer.h"
#include "trainer/model/model_config.h"
#include "trainer/model/noted.h"
#include "trainer/update/update_exchange.h"

namespace everstep::trainer {

// A window whose gradient is not finite, or far larger than those before it. Nobody may apply it.
struct Anomaly {
  // The op that made numbers which are not finite out of finite ones: the worker that ran it, and its minibatch.
  struct Source {
    int worker = 0;
    Position position;
    // Run again from the window's beginning, drained and on the same bits, it meets the same numbers. Not so in the
    // first minibatches of an asynchronous window, which meet two versions of the weights unless it begins drained.
    bool repeats = true;

    bool operator==(const Source&) const = default;
  };

  std::int64_t window = 0;
  std::optional<Source> source{};  // of the first minibatch that has one; nothing: nobody saw it happen
  double norm_limit = 0;           // 0: the gradient is not finite; else its norm is finite and above this

  bool operator==(const Anomaly&) const = default;
};

// What is done about them. Of several such windows in a row only the first stops the run: weights that are ruined give
// nothing else, and running every window again would not mend them.
struct AnomalyPolicy {
  bool stops = false;         // before the update, so that the window can be run again; else it is skipped
  double explode_factor = 0;  // a norm of more than so many times the median of those before is one; 0: none is
  // The window that is run again because of one, and by which limit its norm is judged (0: by none).
  std::optional<std::int64_t> window{};
  double norm_limit = 0;
  bool skips = false;              // it has been tried often enough: it is skipped if it happens again
  std::int64_t most_in_a_row = 0;  // so many skipped windows end the run with an error; 0: no number does

  bool operator==(const AnomalyPolicy&) const = default;
};

// Whether no number between two stages is NaN or infinite.
bool is_finite(const Buffer& tensor, Precision precision);

// Is told what goes into a worker's ops and what comes out, and remembers where numbers ceased to be finite. Of a
// chunk's backward the forward's input is an input, too. What is noted on a device counts when it is known.
class SourceWatch {
 public:
  struct Pass {
    std::int64_t window = 0;
    int stage = 0;
    Position position;
  };

  // Whether a number of an op's input or output is not finite: nothing is bad where there is no tensor.
  struct Tensors {
    Noted<bool> bad_input;
    Noted<bool> bad_output;
  };

  void forward(const Pass& pass, const Tensors& tensors, const Noted<double>& loss);
  void backward(const Pass& pass, const Tensors& tensors, const Noted<bool>& overflowed);

  // Whether it has happened here in the window: its sums are of no use to anybody.
  bool has_seen(std::int64_t window);

  // The first minibatch of the window in which it happened here; forgets it.
  std::optional<Position> take(std::int64_t window);

 private:
  struct Seen {
    Pass pass;
    bool is_forward = true;
    Tensors tensors;
    Noted<double> loss;
    Noted<bool> overflowed;

    bool is_known() const;
  };

  void look();
  void judge(const Seen& seen);

  std::deque<Seen> unknown_;                   // yet, in the order of the ops
  std::set<std::pair<int, Position>> spoilt_;  // stage and minibatch whose forward met or made such numbers
  std::map<std::int64_t, Position> sources_;   // by window
};

// The norms of the last updates of a run, by which a window is found to explode.
class NormHistory {
 public:
  void add(double norm);
  // `factor` times their median; 0 before there are enough.
  double limit(double factor) const;

 private:
  static constexpr std::size_t kKept = 16;
  static constexpr std::size_t kEnough = 8;

  std::deque<double> norms_;
};

// What everybody concludes from the records. `norm_limit` 0: there is none. `starts_drained`: of this window.
std::optional<Anomaly> find_anomaly(const scheduler::Schedule& schedule, const std::vector<UpdateRecord>& records,
                                    const UpdateDecision& decision, std::int64_t window, double norm_limit,
                                    bool starts_drained);

// "the gradient of window 12 is not finite: minibatch 100 on worker 2"
Error error_of(const Anomaly& anomaly);

// Why an update was skipped: `norm_limit` as Anomaly has it, `norm` that of the gradient.
std::string skip_reason(double norm_limit, double norm, Accumulation accumulation);

}  // namespace everstep::trainer
