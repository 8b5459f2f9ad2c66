#include "elastic/sim/commit_term.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "elastic/sim/process.h"
#include "elastic/sim/world.h"

namespace everstep::elastic::sim {
namespace {

constexpr Tick kCommitDeadline = 2 * kSecond;
constexpr Tick kPause = kSecond / 10;
constexpr Tick kGivesUpAfter = 30 * kSecond;

std::string record_path(const CheckpointName& name) { return to_string(name) + "/committed"; }

}  // namespace

CommitTerm::CommitTerm(Process& process, GenerationRecord generation, Right right, std::optional<HeadDocument> found)
    : process_(process),
      generation_(std::move(generation)),
      right_(right),
      committer_(hex_text(process.world().dice().bits())),
      found_(std::move(found)),
      parent_(found_) {
  // A leader that died may not have got to writing it.
  if (found_) keep_record(*found_);
}

// As long as the process lives: what it was told it concludes.
void CommitTerm::later(Tick delay, std::function<void()> action) {
  process_.later(delay, [self = shared_from_this(), action = std::move(action)] { action(); });
}

void CommitTerm::take(const CheckpointName& name, int rank, const AckRecord& ack) {
  if (concluded_ && concluded_->name == name) return untold.push_back(*concluded_);
  // A late one, of a checkpoint that was concluded long ago, must not disturb the one that is being collected.
  const bool is_old = (concluded_ && name.position <= concluded_->name.position) ||
                      (collection_ && name.position < collection_->name.position);
  if (is_old) return;
  if (ack.shard.empty()) {
    collection_.reset();
    return give_up(name);
  }
  if (!collection_ || collection_->name != name) collection_ = Collection{name, {}};
  collection_->shards[rank] = ack.shard;
  if (collection_->shards.size() != generation_.roster.plan.workers.size()) return;
  waiting_.push_back(*std::exchange(collection_, std::nullopt));
  next_in_line();
}

void CommitTerm::next_in_line() {
  if (is_working_ || waiting_.empty()) return;
  is_working_ = true;
  Collection parts = std::move(waiting_.front());
  waiting_.erase(waiting_.begin());
  later(process_.world().dice().below(20 * kMillisecond), [this, parts] {
    process_.world().traps.reached(Point::kBeforeManifest, process_);
    later(0, [this, parts] { assemble(parts); });
  });
}

void CommitTerm::read_head(Then then) {
  const std::string key = process_.world().keys.head();
  process_.world().store.transact(process_, {{}, {elastic::get(key)}}, kCommitDeadline,
                                  [self = shared_from_this(), then = std::move(then)](const Result<TxnReply>& reply) {
                                    if (!reply) return then(reply.error());
                                    const auto& found = reply->reads.front();
                                    then(found.empty() ? std::optional<KeyValue>() : std::optional(found.front()));
                                  });
}

void CommitTerm::assemble(const Collection& parts) {
  World& world = process_.world();
  auto next = std::make_shared<Attempted>();
  next->parts = parts;
  Manifest& manifest = next->manifest;
  manifest.name = parts.name;
  std::set<Consumed> consumed;
  std::optional<std::int64_t> version;
  bool agrees = !is_overtaken_;
  for (const auto& [rank, path] : parts.shards) {
    const auto text = world.disk.read(path);
    const auto shard = text ? parse_shard(*text) : std::nullopt;
    agrees = agrees && shard && shard->name == parts.name && version.value_or(shard->version) == shard->version;
    if (!agrees) return fail(next, false);
    version = shard->version;
    manifest.skipped = shard->skipped;
    manifest.files.insert(manifest.files.end(), shard->files.begin(), shard->files.end());
    consumed.insert(shard->history.begin(), shard->history.end());
  }
  if (!agrees) return fail(next, false);
  manifest.version = *version;
  if (parent_) manifest.parent = parent_->manifest;
  const std::int64_t begin = parent_ ? parent_->name.position.value : 0;
  if (begin >= parts.name.position.value) return fail(next, false);  // committed long ago, and its acks were left over
  for (const Consumed& one : consumed) {
    if (one.position >= begin && one.position < parts.name.position.value) manifest.consumed.push_back(one);
  }
  survey(next);
}

void CommitTerm::survey(const std::shared_ptr<Attempted>& next) {
  read_head([this, next](const Result<std::optional<KeyValue>>& item) {
    if (!item) return fail(next, false);
    if (*item) {
      const auto record = parse_head_record((*item)->value);
      next->replaced = record ? parse_head_document(record->document) : std::nullopt;
    }
    // One that began with an old HEAD would leave a hole, as Catalog::commit finds out.
    const bool is_known = !next->replaced || next->replaced->committer == committer_ ||
                          (found_ && next->replaced->manifest == found_->manifest);
    if (!is_known) return fail(next, false);
    std::vector<HeadDocument> committed = records();
    if (next->replaced && (committed.empty() || committed.front().sequence < next->replaced->sequence)) {
      committed.insert(committed.begin(), *next->replaced);
    }
    HeadDocument& head = next->head;
    head.sequence = 1;
    head.name = next->parts.name;
    head.parent = next->manifest.parent;
    head.committer = committer_;
    if (!committed.empty()) {
      head.sequence = committed.front().sequence + 1;
      head.previous = committed.front().manifest;
    }
    for (const FileRef& file : next->manifest.files) {
      if (!process_.world().disk.read(file.path)) return fail(next, false);
    }
    const std::string text = to_text(next->manifest);
    head.path = to_string(head.name) + "/manifest-" + hex_text(process_.world().dice().bits());
    head.manifest = digest_of(text);
    write_manifest(next, 0);
  });
}

void CommitTerm::write_manifest(const std::shared_ptr<Attempted>& next, int part) {
  later(process_.world().dice().between(1, 10) * kMillisecond, [this, next, part] {
    Disk& disk = process_.world().disk;
    const std::string& path = next->head.path;
    Status done;
    if (part == 0) done = disk.create(path);
    if (part == 1) done = disk.write(path, to_text(next->manifest));
    if (part == 2) done = disk.sync(path);
    if (part == 2 && !done && process_.world().mutation == Mutation::kSyncAgain) done = disk.sync(path);
    if (part == 3 && process_.world().mutation != Mutation::kNoDirectorySync) disk.sync_directory(directory_of(path));
    if (!done) return fail(next, false);
    if (part < 3) return write_manifest(next, part + 1);
    if (next->replaced) keep_record(*next->replaced);
    process_.world().traps.reached(Point::kBeforeCommit, process_);
    later(0, [this, next] { advance(next); });
  });
}

void CommitTerm::advance(const std::shared_ptr<Attempted>& next) {
  read_head([this, next](const Result<std::optional<KeyValue>>& item) {
    if (!item) return fail(next, false);
    std::optional<HeadDocument> now;
    if (*item) {
      const auto record = parse_head_record((*item)->value);
      now = record ? parse_head_document(record->document) : std::nullopt;
    }
    if (now != next->replaced) return fail(next, false);
    const HeadCommit::Expected expected{right_.generation, *item ? (*item)->modified : 0, right_.leader};
    const Keys& keys = process_.world().keys;
    next->commit.emplace(keys, expected, record_of(next->head),
                         keys.acks(generation_.roster.attempt, to_string(next->head.name)));
    next->give_up = process_.world().now() + kGivesUpAfter;
    send_commit(next);
  });
}

void CommitTerm::send_commit(const std::shared_ptr<Attempted>& next) {
  process_.world().store.transact(process_, next->commit->transaction(), kCommitDeadline,
                                  [self = shared_from_this(), next](const auto& reply) {
                                    if (!reply && self->process_.world().mutation == Mutation::kTimeoutIsFailure)
                                      return self->fail(next, false);
                                    switch (next->commit->on_reply(reply)) {
                                      case HeadCommit::State::kCommitted:
                                        return self->conclude(next);
                                      case HeadCommit::State::kOutdated:
                                        return self->fail(next, false);
                                      case HeadCommit::State::kRefused:
                                        return self->fail(next, true);
                                      case HeadCommit::State::kUnknown:
                                        return self->fail(next, false);
                                      case HeadCommit::State::kSending:
                                        if (self->process_.world().now() > next->give_up)
                                          return self->fail(next, false);
                                        return self->later(kPause, [self, next] { self->send_commit(next); });
                                    }
                                  });
}

void CommitTerm::conclude(const std::shared_ptr<Attempted>& next) {
  keep_record(next->head);
  concluded_ = Verdict{next->parts.name, true};
  untold.push_back(*concluded_);
  parent_ = next->head;
  clean_up(next);
}

// Whether it is HEAD after all is looked up before anything is removed.
void CommitTerm::fail(const std::shared_ptr<Attempted>& next, bool is_overtaken) {
  is_overtaken_ = is_overtaken_ || is_overtaken;
  if (next->head.path.empty()) {
    give_up(next->parts.name);
    is_working_ = false;
    return next_in_line();
  }
  const auto remove_documents = [this, next] {
    (void)process_.world().disk.remove(next->head.path);
    give_up(next->parts.name);
    is_working_ = false;
    next_in_line();
  };
  if (process_.world().mutation == Mutation::kTimeoutIsFailure) return remove_documents();
  read_head([this, next, remove_documents](const Result<std::optional<KeyValue>>& item) {
    const bool differs = item && (!*item || (*item)->value != to_text(record_of(next->head)));
    if (item && !differs) return conclude(next);
    const bool may_still_happen = next->commit && (next->commit->state() == HeadCommit::State::kSending ||
                                                   next->commit->state() == HeadCommit::State::kUnknown);
    if (differs && !may_still_happen) return remove_documents();
    give_up(next->parts.name);
    is_working_ = false;
    next_in_line();
  });
}

void CommitTerm::give_up(const CheckpointName& name) {
  process_.world().tell(process_.name(), [&] { return "as leader: abandons checkpoint " + to_string(name); });
  concluded_ = Verdict{name, false};
  untold.push_back(*concluded_);
}

void CommitTerm::keep_record(const HeadDocument& head) {
  Disk& disk = process_.world().disk;
  const std::string path = record_path(head.name);
  if (disk.read(path)) return;
  const bool is_kept = disk.create(path) && disk.write(path, to_text(head)) && disk.sync(path);
  if (is_kept) {
    disk.sync_directory(directory_of(path));
  } else {
    (void)disk.remove(path);
  }
}

// ---- cleaning up ----

std::vector<HeadDocument> CommitTerm::records() const {
  std::vector<HeadDocument> heads;
  for (const std::string& path : process_.world().disk.list("")) {
    if (!path.ends_with("/committed")) continue;
    const auto text = process_.world().disk.read(path);
    if (const auto head = parse_head_document(*text)) heads.push_back(*head);
  }
  std::sort(heads.begin(), heads.end(), [](const auto& a, const auto& b) { return a.sequence > b.sequence; });
  return heads;
}

// Records first, then manifests, then the rest, so that what is named is there.
std::vector<std::string> CommitTerm::what_may_go(const HeadDocument& newest) const {
  const World& world = process_.world();
  const bool all_but_head = world.mutation == Mutation::kRemoveAllButHead;
  const std::vector<HeadDocument> committed = records();
  std::set<std::string> kept{to_string(newest.name)};
  std::set<std::string> known;
  std::string descent = newest.manifest;
  std::size_t of_line = 0;
  for (std::size_t at = 0; at < committed.size(); ++at) {
    const HeadDocument& head = committed[at];
    known.insert(to_string(head.name));
    const bool is_of_line = head.manifest == descent;
    if (is_of_line) descent = head.parent;
    const auto keep_last = static_cast<std::size_t>(world.job.keep_last);
    const bool keeps = at < keep_last || (is_of_line && of_line++ < keep_last);
    if (keeps && !all_but_head) kept.insert(to_string(head.name));
  }
  std::vector<std::string> removed;
  for (const std::string_view kind : {"/committed", "/manifest-", "/"}) {
    for (const std::string& path : world.disk.list("")) {
      const std::string directory(directory_of(path));
      const auto name = parse_checkpoint_name(directory);
      const bool is_orphan = !known.contains(directory);
      const bool is_ours = name && name->generation >= generation_.roster.attempt.generation;
      const bool keeps = kept.contains(directory) || (is_orphan && is_ours && !all_but_head) || !name;
      const bool is_next =
          path.find(kind) != std::string::npos && std::find(removed.begin(), removed.end(), path) == removed.end();
      if (!keeps && is_next) removed.push_back(path);
    }
  }
  return removed;
}

void CommitTerm::clean_up(const std::shared_ptr<Attempted>& next) {
  for (const auto& [rank, path] : next->parts.shards) (void)process_.world().disk.remove(path);
  read_head([this, next](const Result<std::optional<KeyValue>>& item) {
    is_working_ = false;
    const bool is_head = item && *item && (*item)->value == to_text(record_of(next->head));
    if (is_head) remove(what_may_go(next->head));
    next_in_line();
  });
}

void CommitTerm::remove(std::vector<std::string> paths) {
  if (paths.empty()) return;
  later(process_.world().dice().between(1, 5) * kMillisecond, [this, paths = std::move(paths)]() mutable {
    process_.world().traps.reached(Point::kCleaningUp, process_);
    (void)process_.world().disk.remove(paths.front());
    paths.erase(paths.begin());
    remove(std::move(paths));
  });
}

}  // namespace everstep::elastic::sim
