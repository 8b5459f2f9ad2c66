#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "elastic/brain/decision.h"
#include "launcher/job/checkpoint_store.h"
#include "launcher/job/train_request.h"
#include "launcher/worker/compute_watch.h"
#include "launcher/worker/generation_copies.h"
#include "launcher/worker/peer_lines.h"
#include "launcher/worker/shard_acks.h"
#include "launcher/worker/worker_device.h"
#include "storage/head.h"
#include "trainer/checkpoints/checkpoint_writer.h"
#include "trainer/loop/train_loop.h"
#include "trainer/recovery/end_state.h"
#include "trainer/recovery/state_transfer.h"
#include "trainer/threads/stop_gate.h"
#include "trainer/wire/peer_connector.h"

namespace everstep::launcher {

// What all generations that a worker takes part in have in common. All of it outlives them.
struct TrainingGround {
  const TrainRequest& request;
  const trainer::DataSource& data;
  CheckpointStore& checkpoints;
  elastic::KvStore& kv;
  elastic::Keys keys;
  std::uint64_t lineage = 0;
  WorkerId self;
  ComputeWatch& watch;
  trainer::FlightRecorder& recorder;
  const WorkerDevice& device;
  double slowdown = 1;  // takes so many times as long as it has to
};

// Told by the training thread; must not block.
struct RunCallbacks {
  std::function<void()> on_moved;  // the origin is in place: training begins
  std::function<void(const trainer::StepReport&)> on_step;
  std::function<void(std::int64_t step, double loss)> on_validation;
  std::function<void(Position)> on_save_skipped;
  std::function<void(const Error&)> on_commit_waiting;  // etcd does not take the word of a part that is durable
  std::function<void(elastic::TrainingEnded)> on_end;   // the last call
};

// One worker's part in one generation, on a thread of its own: brings the origin into place, trains, and hands on what
// it holds at the end. A donor only hands over.
class GenerationRun {
 public:
  struct Start {
    elastic::GenerationRecord generation;
    elastic::Revision opened = 0;  // when `gen` said so
    trainer::PeerConnection connection;
    WorkerDevice::Links links;
    // What this worker has of the origin; nothing: no part of it.
    std::shared_ptr<const trainer::EndState> end_state;  // origin kMemory, kSums
    std::shared_ptr<const trainer::CopiedState> copies;  // origin kCopies
    std::optional<storage::Head> head;                   // origin kCheckpoint: the checkpoint
  };

  GenerationRun(const TrainingGround& ground, Start start, RunCallbacks callbacks);
  GenerationRun(const GenerationRun&) = delete;
  GenerationRun& operator=(const GenerationRun&) = delete;
  // Breaks off, if it has not ended.
  ~GenerationRun();

  const elastic::GenerationRecord& generation() const { return start_.generation; }
  trainer::StopGate& stops() { return stops_; }

  // From any thread; on_end follows soon.
  void abort(const std::string& reason);

  // A connection was lost while the training thread may be waiting for something else.
  void notice_loss();
  bool has_lost_a_peer();

  void take(const trainer::Verdict& verdict);
  trainer::LifelineNews& news() { return *start_.connection.news; }
  PeerLines& lines() { return *lines_; }
  std::unique_ptr<PeerLines> take_lines() { return std::move(lines_); }  // when it has ended

  // After on_end: what this worker holds (nothing, if it broke off), and whether the end was saved.
  std::shared_ptr<const trainer::EndState> end_state() const { return end_state_; }
  GenerationCopies copies() const;  // however it ended
  GroupSums sums() const;           // if it broke off
  const Status& saved() const { return saved_; }

 private:
  void run();
  elastic::TrainingEnded work();
  void close_to_others();
  bool is_donor() const { return number_ >= static_cast<int>(plan().workers.size()); }
  const scheduler::Plan& plan() const { return start_.generation.roster.plan; }
  elastic::TrainingEnded broken(const Error& error);
  elastic::TrainingEnded stopped_in_group(trainer::EndState state);
  elastic::HeldRecord held_copies() const;
  trainer::TransferRequest transfer() const;
  Result<trainer::MovedState> move_origin();
  Result<trainer::TrainResult> train_from(std::optional<trainer::MovedState> moved);
  Status restore_checkpoint(trainer::TrainOptions& options, trainer::TrainHooks& hooks);
  Error damaged_origin(Error error);
  trainer::TrainHooks hooks();
  void leave_out_and_watch(trainer::TrainOptions& options) const;
  trainer::WriterSetup writer_setup() const;

  const TrainingGround& ground_;
  Start start_;
  const RunCallbacks callbacks_;
  const int number_;  // in the transport
  std::unique_ptr<PeerLines> lines_;
  trainer::StopGate stops_;
  ShardAcks acks_;
  std::unique_ptr<trainer::CheckpointWriter> writer_;  // a donor has none
  std::optional<storage::Manifest> manifest_;
  std::shared_ptr<trainer::StateCopies> copies_;  // none: none are kept
  bool origin_is_damaged_ = false;
  bool is_faulty_ = false;
  bool is_hopeless_ = false;                       // too many updates in a row were skipped
  std::optional<elastic::AnomalyReport> anomaly_;  // why training stopped
  std::atomic<bool> is_aborted_{false};
  std::mutex transport_mutex_;  // between the training thread that leaves the transport and others that look at it
  bool has_left_ = false;
  std::shared_ptr<const trainer::EndState> end_state_;
  std::shared_ptr<const trainer::EndState> sums_;
  Status saved_;
  std::promise<void> ended_;
  std::future<void> has_ended_ = ended_.get_future();
  std::thread thread_;
};

}  // namespace everstep::launcher
