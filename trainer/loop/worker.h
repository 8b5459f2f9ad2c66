#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/result.h"
#include "trainer/loop/copy_keeper.h"
#include "trainer/loop/input_queue.h"
#include "trainer/loop/pending_weights.h"
#include "trainer/loop/stage_clock.h"
#include "trainer/loop/train_loop.h"
#include "trainer/recovery/group_stop.h"
#include "trainer/recovery/super_rounds.h"
#include "trainer/update/gradient_reduction.h"
#include "trainer/update/provisional_step.h"
#include "trainer/update/update_exchange.h"

namespace everstep::trainer {

// A cut inside a window that was agreed on.
struct ExpectedCapture {
  std::int64_t window = 0;
  int round = 0;
  int chunks_left = 0;           // whose Capture is still to come
  std::map<int, Buffer> sums{};  // by stage, until they are all there and can be reduced
  NotedFlags overflowed;
  StagedCut cut;
};

// MinibatchLoss, as soon as it is known.
struct NotedLoss {
  int minibatch = 0;
  Noted<double> loss;
};

// A forward or half of a backward that a device is given, and how long it works on it.
struct TimedOp {
  scheduler::Op op;
  std::unique_ptr<DeviceSpan> span;
};

// The part of an UpdateRecord that is computed where the chunks are, stages ascending.
struct NotedRecord {
  NotedFlags overflowed;
  std::vector<Noted<double>> sums_of_squares;
  std::vector<Noted<std::uint64_t>> weight_hashes;
};

// One worker's state and the ops on it: what train() interprets a schedule with. The options, transport and hooks must
// outlive it.
class Worker {
 public:
  // Checks the options, allocates the chunks of this worker and fills in their initial weights.
  static Result<std::unique_ptr<Worker>> make(const TrainOptions& options, const DataSource& data, Transport& transport,
                                              const TrainHooks& hooks);
  virtual ~Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Runs windows [version, version + windows) and drains, or stops early where a stop was agreed on.
  Status run(std::int64_t windows);

  // Makes a checkpoint of the drained pipeline if one is due at the update that run() ended with. After an evaluation,
  // so that the loss goes with it.
  void save_if_due(std::optional<double> validation_loss);

  // Makes one of the end, unless the newest holds this very state; waits until it is saved, and tells whether it is.
  Status save_at_end(std::optional<double> validation_loss);

  // Forward only over the first minibatches of the validation split; the pipeline must be drained. All workers get the
  // mean loss.
  Result<double> evaluate(std::int64_t minibatches);

  // After the last run(): waits until all that guard have copies of the newest version.
  Status end_copies();

  // When nothing runs any more, in whatever way it ended: what hooks.copies keep lies on the host from now on.
  void bring_copies_home() const;

  // After a failure: if it is a death in another group, those of this one need not wait for this worker's word.
  void refuse_group_stop();

  // Updates made since the start of training; one that a live checkpoint holds in advance counts.
  std::int64_t updates() const { return version_.value + (adopts_next_ ? 1 : 0); }
  bool stopped() const { return stop_ != WindowStop::kNo || group_stop_; }
  RunEnd end() const;
  const TrainResult& result() const { return result_; }

  // Calls hooks.on_end with the weights of each chunk.
  void hand_over_weights() const;

  // What this worker has when nothing runs any more. Nothing but the destructor may follow.
  EndState take_end_state();

 protected:
  Worker(const TrainOptions& options, Transport& transport, const TrainHooks& hooks, scheduler::Schedule shape);
  static Result<scheduler::Schedule> shape_of(const TrainOptions& options, const Transport& transport);
  Status prepare(const DataSource& data);

  // The decisions that tests take wrongly, to prove that the checks would notice: which op comes next, which second
  // half of a backward comes before it, which gradient buffer a backward adds to, which weights it reads, what a
  // provisional step is made with, that guards have their copies before an exchange, and that owners keep theirs after
  // it.
  virtual scheduler::Op op_at(std::int64_t index) const { return stream_->at(index); }
  virtual std::optional<WeightsOp> weights_before(std::int64_t index, const scheduler::Op& op);
  virtual int parity_of(const scheduler::Op& op) const { return static_cast<int>(op.window % 2); }
  virtual bool reads_provisional(const scheduler::Op& op) const;
  virtual StepInput provisional_input(std::int64_t window) const;
  virtual Status finish_copies();
  virtual void keep_newest_copy();

  const OpStream& stream() const { return *stream_; }
  PendingWeights& pending_weights() { return weights_; }

 private:
  // A stage replica on this device.
  struct Chunk {
    int stage = 0;
    ChunkMemory memory;
    Buffer previous_weights;                 // of the version before, with options.stash only
    Buffer next_weights;                     // from a live checkpoint, until the first update puts them in place
    Buffer steady_weights;                   // on the owner, with options.stash and copies only: what no backward swaps
    std::array<NotedFlags, 2> overflowed{};  // by window parity: a gradient could not be added
    std::unique_ptr<StageCompute> compute;
    std::unique_ptr<StageOptimizer> optimizer;        // on the owner only
    std::map<std::int64_t, Version> forward_version;  // by position, of the minibatches in flight
    StageClock clock{};
  };
  static constexpr std::size_t kOpsKept = 64;

  static FrameHeader job_of(const TrainOptions& options);
  Result<Chunk> make_chunk(int stage, const DataSource& data);
  Chunk& chunk_of(int stage);
  bool owns(int stage) const;

  Status make_stream(std::int64_t windows);
  Status run_op(std::int64_t index, const scheduler::Op& op);
  void end_op();
  void count_time(const OpRecord& record);
  void count_time(const scheduler::Op& op, Tick time);
  void count_ended_spans();
  Status forward(std::int64_t index, const scheduler::Op& op);
  Result<StageCompute::Output> forward_through(Chunk& chunk, Position position, Buffer input);
  Status backward(std::int64_t index, const scheduler::Op& op);
  bool closes_sums(const scheduler::Op& op) const;
  bool can_begin(std::int64_t index, const scheduler::Op& op) const;
  Status backward_weights(const WeightsOp& weights);
  Status update(const scheduler::Op& op);

  // worker_provisional.cpp
  Status prepare_provisional();
  void decide_provisional(std::int64_t window);
  bool makes_provisional(std::int64_t window) const { return makes_provisional_ == window && !group_stop_; }
  void copy_for_provisional(const scheduler::Op& op);
  bool provisional_can_begin(const scheduler::Op& op) const;
  Status select_weights(Chunk& chunk, const scheduler::Op& op);
  Status finish_provisional();

  Noted<bool> not_finite(const Buffer& tensor) const;

  // Null if the minibatch is to be run.
  const BlankMinibatch* blank_at(Position position) const;

  Result<Buffer> take_input(std::int64_t index);
  void send_output(const scheduler::Op& op, Buffer output);
  std::int64_t last_certain_window() const;
  Status advance_others();

  struct EvaluationOp;  // evaluation.cpp
  static std::vector<EvaluationOp> evaluation_ops(const scheduler::Schedule& shape, std::int64_t begin,
                                                  std::int64_t end, int worker);
  Result<std::vector<UpdateRecord>> evaluate_range(std::int64_t begin, std::int64_t end);
  static FrameHeader activation_header(FrameHeader header, const EvaluationOp& op, int stage);
  Result<Noted<double>> evaluate_one(const FrameHeader& header, const EvaluationOp& op);

  // worker_checkpoint.cpp
  void start_from(const ResumePoint& resume);
  Status fill_chunk(Chunk& chunk);
  Status fill_on_host(const Chunk& chunk, const StageState& state) const;
  bool writes(int stage) const;
  int rounds_from(std::int64_t first_minibatch) const;
  int rounds_before_cut(bool starts_drained) const;
  std::int64_t super_round() const { return scheduler::super_round_size(options_.schedule); }
  DueCut next_cut(const UpdateDecision& decision, std::int64_t window);
  void expect_capture(std::int64_t window, std::optional<int> round);
  bool is_expected(const scheduler::Op& capture) const;
  void capture(const scheduler::Op& op);
  void reduce_capture();
  void hand_over_capture();
  void stage_weights_begun_on(std::int64_t window);
  void stage_state(const Chunk& chunk, StagedCut& cut);
  void save_at_update(CutKind kind, std::optional<double> validation_loss);
  void hand_over(StagedCut cut);
  void adopt_next_weights();

  void stash_weights();
  NotedRecord note_record(std::int64_t window);
  Noted<std::uint64_t> hash_of(const Buffer& weights) const;
  UpdateRecord record_of(std::int64_t window, const NotedRecord& noted);
  std::vector<MinibatchLoss> take_losses(std::int64_t window);
  void apply(const UpdateDecision& decision, std::int64_t window);
  bool compares_replicas(std::int64_t window) const;
  Status check_replicas(const std::vector<UpdateRecord>& records, std::int64_t window) const;
  std::optional<Anomaly> anomaly_of(const std::vector<UpdateRecord>& records, const UpdateDecision& decision,
                                    std::int64_t window) const;
  Status stop_for(const Anomaly& anomaly) const;
  Status check_skipped_in_a_row() const;
  void let_everybody_know() const;
  double learning_rate_after(std::int64_t window) const;
  Status share_weights(std::int64_t window);
  void zero_gradients(std::int64_t window, bool owned_too);
  void report(const UpdateDecision& decision, std::int64_t window, const std::optional<Anomaly>& skipped_for);
  std::span<WindowHistory> remember(std::int64_t window, const std::vector<double>& losses);
  WindowHistory run_here(std::int64_t window, const scheduler::MinibatchRange& range,
                         const std::vector<double>& losses) const;

  // worker_stop.cpp
  std::int64_t round_of(const scheduler::Op& op) const;
  SuperRounds::Place last_certain_round() const;
  Status wait_to_start(const scheduler::Op& op);
  std::int64_t last_round_of_stop(std::int64_t round) const;
  void end_after(std::int64_t round);
  Status end_inside_window();
  Status sum_unfinished_window();
  UpdateRecord record_of_unfinished(std::int64_t window);
  bool is_inside_window() const { return last_round_ && !group_stop_ && !rounds_.ends_window(*last_round_); }
  // Whether the stop lies before the windows of this run() at all.
  bool nothing_is_left() const {
    return last_round_ && rounds_.place_of(*last_round_).window < stream_->first_window();
  }
  int plan_workers() const { return static_cast<int>(shape_.workers.size()); }

  // worker_group.cpp
  GroupMembers group() const;
  bool lost_another_group() const;
  GroupWord word_to_group() const;
  Status go_on_in_group(const Error& error);
  Status end_in_group();
  Status sum_in_group(int round);
  std::vector<WindowHistory> ranges_run_by_group(int rounds, const std::vector<double>& losses) const;
  std::chrono::milliseconds patience() const;
  bool has_sums_of(std::int64_t window) const;

  // worker_copies.cpp
  Status begin_copies();
  void add_version_to_copies();
  std::vector<StagedStage> owned_state();

  const TrainOptions& options_;
  Transport& transport_;
  const TrainHooks& hooks_;
  DeviceMemory& memory_;
  scheduler::Schedule shape_;         // who is where; its lists are those of the first window
  std::vector<StageLayout> layouts_;  // per stage
  std::vector<RecordCapacity> capacities_;
  std::vector<Chunk> chunks_;  // stages ascending
  GradientReduction reduction_;
  FlightRecorder own_recorder_;
  FlightRecorder& recorder_;

  std::unique_ptr<OpStream> stream_;
  std::unique_ptr<InputQueue> inputs_;
  PendingWeights weights_{scheduler::most_pending_weights(shape_.depth())};
  Version version_;
  std::int64_t applied_ = 0;                               // updates that were not skipped
  std::int64_t skipped_in_a_row_ = 0;                      // the last ones
  std::map<std::int64_t, std::vector<NotedLoss>> losses_;  // by window
  std::optional<SourceWatch> sources_;                     // where anomalies stop the run
  NormHistory norms_;
  std::unique_ptr<DeviceSpan> span_;  // of the op at hand, from the moment its input is there
  std::deque<TimedOp> timed_ops_;     // of which it is not known yet how long they take
  Mark last_op_;                      // that a device was given
  Mark op_before_;                    // the one before it
  Tick busy_ = 0;                     // since the last exchange
  Tick last_exchange_ = 0;
  SuperRounds rounds_;
  std::int64_t started_ = -1;  // the highest super-round
  Tick round_began_ = 0;       // that one
  Tick round_time_ = 0;        // of the one before
  WindowStop stop_ = WindowStop::kNo;
  std::optional<std::int64_t> last_round_;  // set by a stop that this worker has come to
  ResumePoint unfinished_;                  // what is known of the window that the stop lies in
  bool is_reducing_ = false;                // the sums of the window are on their way to other groups
  bool spoke_to_group_ = false;             // because of a death in another one
  bool group_stop_ = false;                 // last_round_ is this group's own
  Tick group_stop_limit_ = 0;               // when it must be reached
  std::vector<BlankMinibatch> blanks_;      // positions ascending
  TrainResult result_;

  std::int64_t first_minibatch_ = 0;   // where the next run() starts its first window
  bool adopts_next_ = false;           // the next update puts the weights of a live checkpoint in place
  std::map<int, StageState> staging_;  // by stage; kept from one cut to the next
  std::optional<ExpectedCapture> capture_;
  std::vector<WindowHistory> history_;  // since the last cut that was handed over
  std::optional<Position> last_cut_;
  std::int64_t rounds_done_ = 0;        // of the windows that ended in this run
  bool save_is_due_ = false;            // at the update that run() ended with
  std::uint64_t cuts_ = 0;              // handed over so far
  std::unique_ptr<CopyKeeper> copies_;  // none: no copies are kept

  double clip_scale_ = 1;                          // of the last update; 1 if it was skipped
  std::unique_ptr<ProvisionalStep> provisional_;   // none: the plan has no such step
  std::optional<std::int64_t> makes_provisional_;  // the window at hand, if it is to make weights for the next one
  std::int64_t agreed_last_window_ = 0;            // of run(), but for stops inside a window
  std::set<std::int64_t> on_provisional_;          // windows not reported yet that begin on provisional weights
};

}  // namespace everstep::trainer
