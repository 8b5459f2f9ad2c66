#include "launcher/rehearse/chaos/run.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "base/text.h"
#include "launcher/cli/files.h"
#include "launcher/cli/process_table.h"
#include "launcher/rehearse/chaos/chaos_job.h"
#include "launcher/rehearse/chaos/checks.h"
#include "launcher/rehearse/chaos/etcd_servers.h"
#include "launcher/rehearse/chaos/far_host.h"
#include "launcher/rehearse/chaos/injector.h"
#include "launcher/rehearse/chaos/proofs.h"
#include "launcher/rehearse/chaos/small_disk.h"
#include "launcher/rehearse/chaos/waiting.h"
#include "launcher/rehearse/chaos/worker_use.h"

namespace everstep::launcher::chaos {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kJobStartsWithin{60'000};
constexpr milliseconds kNewHeadWithin{30'000};
constexpr milliseconds kShrinksWithin{5'000};
// Less than `everstep train` waits before it kills a worker that does not end: it must not hide one from us.
constexpr milliseconds kEndsWithin = kLease + milliseconds(4'000);
constexpr milliseconds kLeasesEndWithin = 2 * kLease;
constexpr milliseconds kAsksEvery{1'000};
constexpr milliseconds kComesWithin{20'000};  // a newcomer has libraries to load

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string text_of(double seconds) { return fixed_text(seconds, 1) + " s"; }

// Whatever is left of a run when it is over, however it ends.
class LastOfAll {
 public:
  LastOfAll() = default;
  LastOfAll(const LastOfAll&) = delete;
  LastOfAll& operator=(const LastOfAll&) = delete;
  ~LastOfAll() { end_orphans(); }
};

class ChaosRun {
 public:
  ChaosRun(const Schedule& schedule, ComputesOn device, std::filesystem::path directory, Streams& streams)
      : schedule_(schedule), device_(std::move(device)), directory_(std::move(directory)), streams_(streams) {}

  Result<RunReport> run() {
    const auto start = Clock::now();
    adopt_orphans();
    EVERSTEP_TRY(prepare());
    Status done = rehearse();
    if (done) done = prove();
    keep_small_disk();
    if (!done) return done.error();
    report_.seconds = seconds_since(start);
    return std::move(report_);
  }

 private:
  void tell(const std::string& line) { streams_.out << "  " << line << std::endl; }

  void add(Finding finding) {
    tell(to_text(finding));
    report_.findings.push_back(std::move(finding));
  }

  Status prepare() {
    std::error_code error;
    std::filesystem::create_directories(checkpoints(), error);
    if (error)
      return Error{ErrorCode::kUnavailable, "cannot make " + checkpoints().string() + ": " + error.message(), ""};
    EVERSTEP_TRY(write_file((directory_ / "schedule.txt").string(), to_text(schedule_)));
    if (!has_small_disk()) return {};
    auto disk = SmallDisk::mount(checkpoints());
    if (!disk) return disk.error();
    disk_ = std::move(*disk);
    return {};
  }

  bool has_small_disk() const { return schedule_.has(FaultKind::kFillDisk); }
  std::filesystem::path checkpoints() const { return directory_ / (has_small_disk() ? "small-disk" : "checkpoints"); }

  // Nobody else sees the small disk: what is on it must be elsewhere before it goes.
  void keep_small_disk() {
    if (!disk_) return;
    disk_->make_room();
    std::error_code ignored;
    std::filesystem::copy(checkpoints(), directory_ / "checkpoints", std::filesystem::copy_options::recursive, ignored);
    disk_.reset();
    std::filesystem::remove(checkpoints(), ignored);
  }

  Status rehearse() {
    // The audit has a watch of its own.
    const SignalWatch signals;
    Waiting waiting(signals);
    return live_through(waiting);
  }

  // From the first process to the last.
  Status live_through(Waiting& waiting) {
    const LastOfAll cleaner;
    JobOrder order{directory_, checkpoints(), {}};
    order.tcp_only = schedule_.needs_network();
    order.device = device_.device;
    order.transport = device_.transport;
    if (schedule_.has_any(Needs::kFarHost)) {
      auto far = FarHost::start(directory_ / "far-host.log");
      if (!far) return far.error();
      far_ = std::move(*far);
      order.bind = far_->near_address();
    }
    EtcdPlaces places;
    if (far_) places.other_address = far_->etcd_address();
    order.etcd_is_far = schedule_.has(FaultKind::kEtcdSplit);
    if (order.etcd_is_far) places.last = EtcdPlaces::Host{far_->prefix(), far_->far_address()};
    auto etcd = EtcdServers::start(schedule_.etcd_servers, directory_ / "etcd", places);
    if (!etcd) return etcd.error();
    etcd_ = std::move(*etcd);
    order.etcd = etcd_->endpoints();
    auto job = ChaosJob::start(schedule_, order, etcd_->urls());
    if (!job) return job.error();
    job_ = std::move(*job);
    Status ended = endure(waiting);
    job_.reset();
    etcd_->kill_all();
    far_.reset();
    if (!ended) return ended;
    look_for_orphans();
    return {};
  }

  Status endure(Waiting& waiting) {
    EVERSTEP_TRY(wait_for_start(waiting));
    first_uses_ = uses_of(job_->workers());
    Injector injector({*job_, *etcd_, disk_.get(), far_.get(), directory_}, waiting,
                      [this](const std::string& line) { tell(line); });
    EVERSTEP_TRY(injector.run(schedule_));
    EVERSTEP_TRY(check_live(waiting));
    EVERSTEP_TRY(measure_use(waiting));
    EVERSTEP_TRY(check_end(waiting));
    EVERSTEP_TRY(read_keys(waiting));
    flips_byte_ = injector.flips_byte();
    return {};
  }

  Status wait_for_start(Waiting& waiting) {
    const auto has_begun = [this] { return job_->head().has_value() || !job_->train_is_running(); };
    const auto in_time = waiting.becomes_true(has_begun, kJobStartsWithin);
    if (!in_time) return in_time.error();
    if (*in_time && job_->train_is_running()) return {};
    return Error{ErrorCode::kUnavailable,
                 *in_time ? "everstep train ends before its first checkpoint"
                          : "everstep train has made no checkpoint in a minute",
                 "look at " + (directory_ / "train.log").string()};
  }

  // The first new HEAD may have been on its way when the last fault happened; the second was not.
  Status check_live(Waiting& waiting) {
    const auto start = Clock::now();
    std::optional<std::int64_t> before;
    std::optional<double> first;
    const auto goes_on = [&] {
      job_->revive();
      const auto head = job_->head();
      if (!head) return false;
      if (!before) before = head->sequence;
      if (head->sequence > *before && !first) first = seconds_since(start);
      return head->sequence > *before + 1;
    };
    const auto lives = waiting.becomes_true(goes_on, kNewHeadWithin);
    if (!lives) return lives.error();
    const std::string limit = text_of(std::chrono::duration<double>(kNewHeadWithin).count());
    const std::string seen = "a new checkpoint after " + text_of(first.value_or(0)) + ", another after " +
                             text_of(seconds_since(start)) + " (at most " + limit + ")";
    std::vector<std::string> wrong;
    if (!*lives) wrong.push_back("no two new checkpoints within " + limit);
    add(judge(Promise::kLive, wrong, seen));
    return {};
  }

  // Old connections go when all peers have left them, and a change that is still being prepared has some of its own.
  Status measure_use(Waiting& waiting) {
    const auto is_bound = [this] {
      use_change_ = use_change(first_uses_, uses_of(job_->workers()), {});
      return use_change_.wrong.empty();
    };
    const auto bound = waiting.becomes_true(is_bound, kShrinksWithin);
    return bound ? Status() : bound.error();
  }

  Status check_end(Waiting& waiting) {
    const auto start = Clock::now();
    // One that registers after the job was told to end begins it anew, and has to be told, too.
    const milliseconds limit = kEndsWithin + (job_->has_newcomers() ? kComesWithin : milliseconds(0));
    std::optional<Clock::time_point> asked;
    const auto has_ended = [&] {
      if (!asked || Clock::now() - *asked >= kAsksEvery) {
        asked = Clock::now();
        job_->ask_to_stop();
      }
      return job_->has_ended();
    };
    const auto ended = waiting.becomes_true(has_ended, limit);
    if (!ended) return ended.error();
    for (const std::string& one : job_->still_running()) {
      hangs_.push_back(one + " still runs " + text_of(seconds_since(start)) + " after the job was asked to stop");
    }
    for (const BadEnd& one : job_->bad_ends()) hangs_.push_back(one.who + " ended with " + one.how);
    end_text_ = "all processes ended within " + text_of(seconds_since(start)) + " (at most " +
                text_of(std::chrono::duration<double>(limit).count()) + ")";
    report_.generations = job_->generations();
    return {};
  }

  // Leases of those that were killed run out by themselves.
  Status read_keys(Waiting& waiting) {
    std::vector<std::string> left;
    const auto is_clean = [&] {
      auto keys = job_->keys();
      if (!keys) return false;
      keys_ = std::move(*keys);
      left = keys_left(keys_);
      return left.empty();
    };
    const auto clean = waiting.becomes_true(is_clean, kLeasesEndWithin);
    if (!clean) return clean.error();
    unbound_.insert(unbound_.end(), left.begin(), left.end());
    return {};
  }

  void look_for_orphans() {
    for (const pid_t process : living_orphans()) {
      std::string words;
      for (const std::string& word : arguments_of(process)) words.append(" ").append(word);
      hangs_.push_back("process " + std::to_string(process) + " is left:" + words);
    }
    add(judge(Promise::kNoHang, hangs_, end_text_));
  }

  Status prove() {
    add(check_fence(keys_));
    if (flips_byte_) EVERSTEP_TRY(damage_newest(checkpoints()));
    const SavedJob saved{checkpoints(), secret_file(directory_), device_.device};
    const auto audited = audit_checkpoints(saved, streams_);
    if (!audited) return audited.error();
    for (Finding& finding : check_audit(*audited, keys_)) add(std::move(finding));
    report_.commits = audited->commits;
    for (const AuditedStretch& stretch : audited->stretches) report_.updates += stretch.updates;
    auto replayed = replay_checkpoints(saved, directory_ / "replay.log");
    if (!replayed) return replayed.error();
    add(std::move(*replayed));
    for (std::string& one : files_left(checkpoints(), *audited, kKeptCheckpoints)) unbound_.push_back(std::move(one));
    unbound_.insert(unbound_.end(), use_change_.wrong.begin(), use_change_.wrong.end());
    add(judge(Promise::kBound, unbound_,
              use_change_.text + "; " + counted(std::ssize(keys_), "key", "keys") + ", " +
                  counted(std::ssize(audited->orphans), "save", "saves") + " not committed"));
    return {};
  }

  const Schedule& schedule_;
  const ComputesOn device_;
  const std::filesystem::path directory_;
  Streams& streams_;
  RunReport report_;
  std::unique_ptr<SmallDisk> disk_;
  std::unique_ptr<FarHost> far_;
  std::unique_ptr<EtcdServers> etcd_;
  std::unique_ptr<ChaosJob> job_;
  std::vector<WorkerUse> first_uses_;
  UseChange use_change_;
  std::vector<elastic::KeyValue> keys_;
  std::vector<std::string> hangs_;
  std::vector<std::string> unbound_;
  std::string end_text_;
  bool flips_byte_ = false;
};

}  // namespace

bool RunReport::holds() const {
  return std::all_of(findings.begin(), findings.end(), [](const Finding& one) { return one.holds; });
}

Result<RunReport> run_schedule(const Schedule& schedule, const ComputesOn& device,
                               const std::filesystem::path& directory, Streams& streams) {
  return ChaosRun(schedule, device, directory, streams).run();
}

}  // namespace everstep::launcher::chaos
