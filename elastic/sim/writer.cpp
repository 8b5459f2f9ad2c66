#include "elastic/sim/writer.h"

#include <utility>

#include "base/text.h"
#include "elastic/records.h"
#include "elastic/sim/process.h"
#include "elastic/sim/world.h"

namespace everstep::elastic::sim {
namespace {

constexpr Tick kAckDeadline = kSecond / 2;
constexpr Tick kPause = kSecond / 10;

}  // namespace

// The writer's thread: one file after the other, each in steps that take time.
struct Writer::Job : std::enable_shared_from_this<Job> {
  Job(Process& its_process, WorkerId id, Attempt its_attempt, Revision its_opened)
      : process(its_process), self(id), attempt(its_attempt), opened(its_opened) {}

  struct Pending {
    std::string path;
    std::string text;
  };

  void begin(Cut next) {
    cut = std::move(next);
    files.clear();
    Shard shard{cut.name, cut.version, {}, cut.skipped, cut.history};
    const std::string tag = hex_text(process.world().dice().bits());
    for (const auto& [block, state] : cut.blocks) {
      const std::string text = to_text(BlockFile{block, state, cut.version, to_string(self) + "-" + tag});
      const std::string path = directory() + "/block-" + std::to_string(block) + (is_anonymous() ? "" : "-" + tag);
      shard.files.push_back({block, path, digest_of(text)});
      files.push_back({path, text});
    }
    shard_path = to_string(cut.name) + "/shard-" + tag;
    files.push_back({shard_path, to_text(shard)});
    step(0, 0);
  }

  bool is_anonymous() const { return process.world().mutation == Mutation::kNameWithoutGeneration; }
  std::string directory() const {
    return is_anonymous() ? "position-" + std::to_string(cut.name.position.value) : to_string(cut.name);
  }

  void later(Tick delay, std::function<void()> action) {
    process.later(delay, [weak = weak_from_this(), action = std::move(action)] {
      const auto job = weak.lock();
      if (job && !job->is_over) action();
    });
  }

  // File `at`: 0 create, 1 and 2 write half of it, 3 sync; after the last one, the directories.
  void step(std::size_t at, int part) {
    later(process.world().dice().between(1, 20) * kMillisecond, [this, at, part] {
      process.world().traps.reached(Point::kWritingShard, process);
      if (at == files.size()) return sync_directories();
      const Status done = do_part(files[at], part);
      if (!done) return acknowledge({"", done.error().message, 0});
      part == 3 ? step(at + 1, 0) : step(at, part + 1);
    });
  }

  Status do_part(const Pending& file, int part) {
    Disk& disk = process.world().disk;
    const std::string_view text = file.text;
    if (part == 0) return disk.create(file.path, is_anonymous());
    if (part == 1) return disk.write(file.path, text.substr(0, text.size() / 2));
    if (part == 2) return disk.write(file.path, text.substr(text.size() / 2));
    if (process.world().mutation == Mutation::kAckBeforeSync) return {};
    Status synced = disk.sync(file.path);
    if (!synced && process.world().mutation == Mutation::kSyncAgain) synced = disk.sync(file.path);
    return synced;
  }

  void sync_directories() {
    if (process.world().mutation == Mutation::kAckBeforeSync) return acknowledge({shard_path, "", 0});
    if (process.world().mutation != Mutation::kNoDirectorySync) {
      process.world().disk.sync_directory(directory());
      process.world().disk.sync_directory(directory_of(shard_path));
    }
    acknowledge({shard_path, "", 0});
  }

  // Putting the same again changes nothing, so an unknown outcome is simply tried again.
  void acknowledge(const AckRecord& ack) {
    process.world().tell(process.name(), [&] {
      return (ack.shard.empty() ? "failed to save " : "saved its part of ") + to_string(cut.name) +
             (ack.error.empty() ? "" : ": " + ack.error);
    });
    const Keys& keys = process.world().keys;
    const Txn txn{{modified_at(keys.generation(), opened)},
                  {put(keys.ack(attempt, to_string(cut.name), self), to_text(ack))}};
    process.world().store.transact(process, txn, kAckDeadline,
                                   [weak = weak_from_this(), ack](const Result<TxnReply>& reply) {
                                     const auto job = weak.lock();
                                     if (!job || job->is_over) return;
                                     if (!reply) return job->later(kPause, [job, ack] { job->acknowledge(ack); });
                                     job->process.world().traps.reached(Point::kAcknowledged, job->process);
                                   });
  }

  Process& process;
  const WorkerId self;
  const Attempt attempt;
  const Revision opened;
  Cut cut;
  std::vector<Pending> files;
  std::string shard_path;
  bool is_over = false;
};

Writer::Writer(Process& process, WorkerId self, Attempt attempt, Revision opened)
    : job_(std::make_shared<Job>(process, self, attempt, opened)) {}

Writer::~Writer() { break_off(); }

void Writer::save(Cut cut) {
  cut_ = cut.name;
  job_->begin(std::move(cut));
}

bool Writer::take_verdict(const CheckpointName& name) {
  if (cut_ != name) return false;
  cut_.reset();
  return true;
}

void Writer::break_off() { job_->is_over = true; }

}  // namespace everstep::elastic::sim
