#include "trainer/checkpoints/checkpoint_committer.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <random>

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log_line.h"
#include "base/text.h"
#include "trainer/checkpoints/caught.h"

namespace everstep::trainer {
namespace {

using storage::CatalogEntry;
using storage::CheckpointName;
using storage::Shard;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// A commit may fail after HEAD has moved, but not durably, or may still happen. Then nobody knows what a power cut
// would leave: the files must stay, while the next checkpoint descends from the one before.
Verdict::Kind verdict_after_failure(const storage::HeadStore& store, const CheckpointName& name, const Error& error) {
  if (error.code == ErrorCode::kDeadlineExceeded) return Verdict::Kind::kUnknown;
  const auto head = caught([&] { return store.read(); });
  const bool names_another = head && (!*head || (*head)->checkpoint != name);
  return names_another ? Verdict::Kind::kAbandoned : Verdict::Kind::kUnknown;
}

}  // namespace

CheckpointCommitter::CheckpointCommitter(RunFacts run, int workers, storage::RetentionOptions retention,
                                         storage::CatalogPorts ports, std::optional<CatalogEntry> parent,
                                         CurveSink* curve)
    : run_(std::move(run)),
      workers_(workers),
      retention_(retention),
      ports_(ports),
      catalog_(ports),
      parent_(std::move(parent)),
      curve_(curve),
      author_(std::random_device{}()),
      fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  EVERSTEP_CHECK(fd_ >= 0, "cannot make an event descriptor");
  // Signals are the supervisor's: one that finds a thread where it is not blocked ends the process.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { this->run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

CheckpointCommitter::~CheckpointCommitter() {
  {
    const std::scoped_lock lock(mutex_);
    is_closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
  ::close(fd_);
}

void CheckpointCommitter::take(int rank, FromRank message) {
  {
    const std::scoped_lock lock(mutex_);
    mailbox_.emplace_back(rank, std::move(message));
  }
  changed_.notify_all();
}

std::vector<CheckpointCommitter::News> CheckpointCommitter::take_news() {
  const std::scoped_lock lock(mutex_);
  std::uint64_t count = 0;
  if (::read(fd_, &count, sizeof count) < 0) return {};
  return std::exchange(news_, {});
}

void CheckpointCommitter::publish(News news) {
  const std::scoped_lock lock(mutex_);
  news_.push_back(std::move(news));
  const std::uint64_t one = 1;
  EVERSTEP_CHECK(::write(fd_, &one, sizeof one) == sizeof one, "an event descriptor takes a number");
}

void CheckpointCommitter::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return mailbox_.empty() && !is_working_; });
}

CheckpointCounts CheckpointCommitter::counts() const {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

Status CheckpointCommitter::last() const {
  const std::scoped_lock lock(mutex_);
  return last_;
}

void CheckpointCommitter::run() {
  // One that committed before may have died before it told the curve.
  keep_curve(nullptr);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_closing_ || !mailbox_.empty(); });
    if (mailbox_.empty()) return;
    const auto [rank, message] = std::move(mailbox_.front());
    mailbox_.pop_front();
    is_working_ = true;
    lock.unlock();
    const Status handled = caught([this, from = rank, &what = message]() -> Status {
      std::visit([&](const auto& one) { handle(from, one); }, what);
      return {};
    });
    if (!handled) answer_after(message, handled.error());
    lock.lock();
    is_working_ = false;
    changed_.notify_all();
  }
}

// Whatever was thrown, who waits for a verdict gets one.
void CheckpointCommitter::answer_after(const FromRank& message, const Error& error) {
  const auto* saved = std::get_if<ShardSaved>(&message);
  const auto* failed = std::get_if<SaveFailed>(&message);
  if (saved == nullptr && failed == nullptr) return;
  const CheckpointName& name = saved != nullptr ? saved->checkpoint : failed->checkpoint;
  if (answer_again(name)) return;
  collection_.reset();
  give_up(name, error, verdict_after_failure(ports_.head, name, error));
}

// All workers compute with the same libraries: they are of one build.
void CheckpointCommitter::handle(int, const Libraries& libraries) {
  if (std::exchange(has_told_libraries_, true)) return;
  storage::Settings& provenance = run_.provenance;
  provenance.insert(provenance.end(), libraries.settings.begin(), libraries.settings.end());
  std::sort(provenance.begin(), provenance.end());
}

void CheckpointCommitter::handle(int, const SaveSkipped& skipped) {
  {
    const std::scoped_lock lock(mutex_);
    ++counts_.skipped;
  }
  publish({{},
           LogLine("checkpoint_skipped")
               .add("step", skipped.position.value / run_.plan.window)
               .add("position", skipped.position.value)
               .add("reason", "the last one is still being written")
               .text()});
}

// A verdict may reach a worker before it has come to that cut itself, and means nothing to it then.
bool CheckpointCommitter::answer_again(const CheckpointName& name) {
  if (concluded_ && concluded_->checkpoint == name) {
    publish({concluded_, ""});
    return true;
  }
  // Word of an older save that came late must not take the place of the one that is being collected.
  const bool is_concluded = concluded_ && name.position < concluded_->checkpoint.position;
  return is_concluded || (collection_ && name.position < collection_->name.position);
}

void CheckpointCommitter::handle(int rank, const ShardSaved& saved) {
  if (answer_again(saved.checkpoint)) return;
  if (!collection_ || collection_->name != saved.checkpoint) {
    collection_ = Collection{saved.checkpoint, {}, 0};
    collection_->shards.resize(workers_);
  }
  collection_->shards[rank] = saved.shard;
  collection_->seconds = std::max(collection_->seconds, saved.seconds);
  const auto& shards = collection_->shards;
  if (!std::all_of(shards.begin(), shards.end(), [](const auto& shard) { return shard.has_value(); })) return;
  const Collection complete = *std::exchange(collection_, std::nullopt);
  commit(complete);
}

void CheckpointCommitter::handle(int rank, const SaveFailed& failed) {
  if (answer_again(failed.checkpoint)) return;
  collection_.reset();
  Error error = failed.error;
  error.message = "worker " + std::to_string(rank) + ": " + error.message;
  give_up(failed.checkpoint, error, Verdict::Kind::kAbandoned);
}

void CheckpointCommitter::commit(const Collection& complete) {
  const auto start = Clock::now();
  auto committed = try_commit(complete);
  if (committed) conclude(complete, std::move(committed).value(), complete.seconds + seconds_since(start));
}

// Gives up by itself if it fails.
Result<CheckpointCommitter::Committed> CheckpointCommitter::try_commit(const Collection& complete) {
  const auto give_up_at = [&](const Error& error) {
    give_up(complete.name, error, Verdict::Kind::kAbandoned);
    return error;
  };
  if (overtaken_) return give_up_at(*overtaken_);
  const auto shards = read_shards(complete);
  if (!shards) return give_up_at(shards.error());
  const storage::WriterTag writer{author_, std::random_device{}()};
  auto request = assemble_commit(run_, *shards, parent_, writer);
  if (!request) return give_up_at(request.error());
  auto committed = catalog_.commit(*request);
  if (committed) return Committed{*std::move(committed), std::move(request->ledger)};
  if (committed.error().code == ErrorCode::kStaleGeneration) overtaken_ = committed.error();
  const Verdict::Kind verdict = verdict_after_failure(ports_.head, complete.name, committed.error());
  if (verdict == Verdict::Kind::kAbandoned) remove_documents(complete.name, writer);
  give_up(complete.name, committed.error(), verdict);
  return committed.error();
}

void CheckpointCommitter::remove_documents(const CheckpointName& name, const storage::WriterTag& writer) {
  storage::FileSystem& files = ports_.files.files;
  static_cast<void>(files.remove(storage::manifest_path(run_.lineage, name, writer)));
  static_cast<void>(files.remove(storage::ledger_path(run_.lineage, name.position, writer)));
}

Result<std::vector<Shard>> CheckpointCommitter::read_shards(const Collection& complete) const {
  std::vector<Shard> shards;
  for (const auto& writer : complete.shards) {
    const std::string path = storage::shard_path(run_.lineage, complete.name, *writer);
    const auto sealed = storage::read_text(ports_.files.files, path, storage::kLargestDocument);
    if (!sealed) return sealed.error();
    const auto text = ports_.seal.open(*sealed);
    if (!text) return text.error();
    auto shard = ports_.documents.parse_shard(*text);
    if (!shard) return shard.error();
    shards.push_back(std::move(shard).value());
  }
  return shards;
}

void CheckpointCommitter::conclude(const Collection& complete, Committed committed, double seconds) {
  concluded_ = Verdict{complete.name, Verdict::Kind::kCommitted};
  {
    const std::scoped_lock lock(mutex_);
    ++counts_.saved;
    counts_.last_step = committed.entry.manifest.version.value;
    last_ = {};
  }
  parent_ = std::move(committed.entry);
  publish({concluded_, event_of(parent_->manifest, seconds)});
  keep_curve(&committed.ledger);
  clean_up(complete);
}

// A curve that lags is put right by the next commit, or by the next committer.
void CheckpointCommitter::keep_curve(const storage::LedgerSegment* committed) {
  if (curve_ == nullptr || !parent_) return;
  const Status kept = caught([&] { return curve_->follow(ports_, *parent_, committed); });
  if (!kept) publish({{}, LogLine("curve_lags").add("reason", kept.error().line()).text()});
}

void CheckpointCommitter::give_up(const CheckpointName& name, const Error& error, Verdict::Kind verdict) {
  concluded_ = Verdict{name, verdict};
  {
    const std::scoped_lock lock(mutex_);
    ++counts_.failed;
    last_ = error;
  }
  LogLine event("checkpoint_failed");
  event.add("step", name.position.value / run_.plan.window).add("position", name.position.value);
  event.add("reason", error.message);
  if (!error.hint.empty()) event.add("hint", error.hint);
  publish({concluded_, event.text()});
}

// The shards have served. What is not removed now is an orphan that a later run's clean-up takes.
void CheckpointCommitter::clean_up(const Collection& complete) {
  for (const auto& writer : complete.shards) {
    static_cast<void>(ports_.files.files.remove(storage::shard_path(run_.lineage, complete.name, *writer)));
  }
  const auto pruned = catalog_.prune(retention_, run_.generation, run_.rejected);
  if (pruned) return;
  LogLine event("checkpoints_not_pruned");
  event.add("reason", pruned.error().message);
  if (!pruned.error().hint.empty()) event.add("hint", pruned.error().hint);
  publish({{}, event.text()});
}

std::string CheckpointCommitter::event_of(const storage::Manifest& manifest, double seconds) {
  return LogLine("checkpoint_saved")
      .add("step", manifest.version.value)
      .add("position", manifest.name.position.value)
      .add("kind", to_string(cut_kind_of(manifest)))
      .add("bytes", manifest.bytes())
      .add("seconds", fixed_text(seconds, 3))
      .text();
}

}  // namespace everstep::trainer
