#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "elastic/brain/decision.h"
#include "elastic/sim/checkpoint_files.h"
#include "elastic/sim/connector.h"
#include "elastic/sim/copies.h"
#include "elastic/sim/network.h"
#include "elastic/sim/stand_in.h"
#include "elastic/sim/writer.h"

namespace everstep::elastic::sim {

class MemberLoop;

// One worker's part in one generation: brings the origin into place, trains the stand-in, and stops, hands over or
// breaks off.
class Run : public std::enable_shared_from_this<Run> {
 public:
  struct Start {
    GenerationRecord generation;
    Revision opened = 0;
    Connection connection;
    std::shared_ptr<const TrainingState> end_state;  // origin kMemory, kSums
    std::shared_ptr<const Copies> copies;            // origin kCopies
    std::optional<HeadDocument> head;
  };

  Run(MemberLoop& self, Start start);

  void begin();

  bool is_of(const Frame& frame) const;
  void take(const Frame& frame);
  void peer_lost(const WorkerId& id, bool is_dead);
  void tell_renewed();
  void take_verdict(const CheckpointName& name, bool is_committed);

  void stop_at_window(WindowStop how);
  std::int64_t promise();
  void stop_at_round(std::int64_t round);
  void abort();

  const std::shared_ptr<const TrainingState>& end_state() const { return end_state_; }  // after it ended in order
  const std::shared_ptr<const TrainingState>& sums() const { return sums_; }  // after its group stopped by itself
  const RosterRecord& roster() const { return start_.generation.roster; }
  const std::shared_ptr<Copies>& copies() const { return copies_; }
  Tick window_time() const { return window_time_; }
  std::string state() const;  // for people

 private:
  const scheduler::Plan& plan() const { return start_.generation.roster.plan; }
  bool is_donor() const { return rank_ >= std::ssize(plan().workers); }
  int group() const { return rank_ / plan().depth; }
  int stage() const { return rank_ % plan().depth; }
  void later(Tick delay, std::function<void()> action);
  void send(Frame frame, const WorkerId& to);

  // The origin.
  void send_own_part();
  std::optional<TrainingState> own_part() const;
  std::vector<WorkerId> holders() const;
  void take_moves();
  bool takes_state_from(const WorkerId& holder, int block) const;
  void restore();
  void start_anew();
  void own_blocks_of(TrainingState state);
  void origin_is_in_place();

  // The loop.
  void start_round();
  void finish_round();
  void compute(std::int64_t from, std::int64_t to);
  bool spoils(Position position);
  std::optional<AnomalyReport> anomaly_of(const std::vector<ExchangeRecord>& records) const;
  void share_copy();
  void exchange();
  void take_exchanges();
  void update(const std::vector<ExchangeRecord>& records);
  void after_update(const std::vector<ExchangeRecord>& records);
  void save();
  void save_and_end();

  // A death in another group: run_group.cpp.
  std::vector<WorkerId> group_members() const;
  bool is_of_another_group(const WorkerId& id) const;
  bool is_blank(std::int64_t position) const;
  void lost_another_group(const WorkerId& id);
  void take_words();
  bool goes_its_own_way();
  void end_in_group();

  void end_in_order(TrainingEnded::How how);
  void break_off(const Error& error, std::optional<std::pair<WorkerId, bool>> lost,
                 std::optional<AnomalyReport> anomaly = {});
  HeldRecord held_copies() const;
  void finish(TrainingEnded ended);

  MemberLoop& self_;
  Start start_;
  const int rank_;
  Writer writer_;
  TrainingState state_;
  std::shared_ptr<Copies> copies_;
  bool is_training_ = false;
  bool has_ended_ = false;
  bool is_aborted_ = false;
  bool has_updated_ = false;
  bool ends_after_save_ = false;
  std::map<WorkerId, MoveRecord> moves_;
  std::map<std::int64_t, std::map<WorkerId, ExchangeRecord>> exchanges_;  // by window
  std::vector<WorkerId> arrivals_;                                        // of the present window's, in their order
  std::vector<Consumed> consumed_;                                        // by this worker, of the unfinished window
  std::optional<Position> source_;                                        // of what is no number in it
  bool is_exchanging_ = false;
  bool waits_for_copies_ = false;  // before it may join the exchange
  std::int64_t cursor_error_ = 0;  // of a worker that goes by a cursor of its own
  WindowStop stop_ = WindowStop::kNo;
  std::int64_t round_ = 0;  // the next one
  std::int64_t started_ = -1;
  std::optional<std::int64_t> promised_;
  std::optional<std::int64_t> last_round_;
  bool waits_for_stop_ = false;
  Tick window_began_ = 0;
  Tick window_time_ = 0;
  std::shared_ptr<const TrainingState> end_state_;
  std::optional<WorkerId> lost_;            // of another group
  std::map<WorkerId, WordRecord> words_;    // of this group
  std::optional<std::int64_t> group_stop_;  // the last super-round of this group
  std::shared_ptr<const TrainingState> sums_;
};

}  // namespace everstep::elastic::sim
