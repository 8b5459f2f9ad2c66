#include "launcher/worker/commit_role.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log_line.h"
#include "scheduler/plan_text.h"
#include "storage/catalog_documents.h"

namespace everstep::launcher {
namespace {

using elastic::GenerationRecord;
using elastic::View;

constexpr std::chrono::milliseconds kCommitCallDeadline{1000};

void add(trainer::CheckpointCounts& sum, const trainer::CheckpointCounts& more) {
  sum.saved += more.saved;
  sum.skipped += more.skipped;
  sum.failed += more.failed;
  if (more.last_step) sum.last_step = more.last_step;
}

Error store_is_behind(const std::optional<storage::Head>& stored, const storage::Head& on_disk) {
  const std::string known = stored ? "checkpoint " + std::to_string(stored->sequence) : "no checkpoint";
  return {ErrorCode::kDataLoss,
          "etcd knows of " + known + ", but checkpoint " + std::to_string(on_disk.sequence) +
              " is in the job's directory: etcd went back in time, or somebody changed the job's keys",
          "everstep job rm removes the job, and everstep resume goes on from the newest checkpoint"};
}

std::string_view text_of(trainer::Verdict::Kind kind) {
  return kind == trainer::Verdict::Kind::kUnknown ? "unknown" : "abandoned";
}

}  // namespace

struct CommitRole::Term {
  GenerationRecord generation;
  CommitRight right;
  std::unique_ptr<storage::HeadStore> head;
  std::unique_ptr<trainer::CheckpointCommitter>
      committer;                      // uses `head`; none: HEAD cannot be read, and nothing be committed
  std::optional<Position> committed;  // HEAD, when the term began
};

CommitRole::CommitRole(elastic::KvStore& kv, CheckpointStore& store, CommitFacts facts,
                       std::function<void(const std::string& event)> on_event)
    : kv_(kv), store_(store), facts_(std::move(facts)), on_event_(std::move(on_event)) {}

CommitRole::~CommitRole() {
  is_over_ = true;
  end();
}

Status CommitRole::look(const View& view, elastic::Revision leader) {
  const elastic::KeyValue* item = view.find(facts_.keys.generation());
  const elastic::Revision opened = item == nullptr ? 0 : item->modified;
  if (term_ && (leader != term_->right.leader || opened != term_->right.generation)) end();
  if (leader == 0 || item == nullptr) return {};
  if (!term_) {
    const auto generation = elastic::parse_generation(item->value);
    if (!generation) return {};
    EVERSTEP_TRY(begin(view, *generation, {facts_.keys, generation->roster.attempt, opened, leader}));
    if (!term_) return {};
  }
  collect(view);
  pass_on_news();
  tell_verdicts();
  // After a failure HEAD may be another one than the committer knows: the next term reads it again.
  if (is_in_doubt_ && untold_.empty()) end();
  return {};
}

// Nothing: no checkpoint was committed. kDataLoss: it cannot be read.
Result<std::optional<storage::Head>> CommitRole::head_in(const View& view) const {
  if (view.is_forged(facts_.keys.head())) return Error{ErrorCode::kDataLoss, "HEAD in etcd is forged", ""};
  const elastic::KeyValue* item = view.find(facts_.keys.head());
  if (item == nullptr) return std::optional<storage::Head>();
  const auto record = elastic::parse_head_record(item->value);
  if (!record) return record.error();
  const storage::CatalogPorts ports = store_.ports();
  auto head = stored_head(*record, ports.documents, ports.seal);
  if (!head) return head.error();
  return std::optional(std::move(head).value());
}

// The file follows the key, so it is never ahead of it, unless the key was put back: etcd was restored from a backup,
// or somebody wrote to it. Only the store itself can tell that the view is not to blame. kUnavailable: not now.
Result<bool> CommitRole::is_store_behind(const View& view, const std::optional<storage::Head>& stored,
                                         const std::optional<storage::Head>& on_disk) {
  if (!on_disk) return false;
  const std::int64_t known = stored ? std::max(stored->sequence, facts_.first_sequence) : 0;
  if (on_disk->sequence <= known) return false;
  const auto reply = kv_.transact(
      {{elastic::modified_at(facts_.keys.head(), view.modified(facts_.keys.head()))}, {}, {}}, kCommitCallDeadline);
  if (!reply) return reply.error();
  if (!reply->succeeded) return Error{ErrorCode::kUnavailable, "HEAD has moved on", ""};
  return true;
}

// Without a term if the store does not answer: the next look tries again.
Status CommitRole::begin(const View& view, const GenerationRecord& generation, CommitRight right) {
  storage::CatalogPorts ports = store_.ports();
  trainer::RunFacts run = facts_.run;
  run.generation = generation.roster.attempt.generation;
  run.plan = trainer::stored_plan(generation.roster.plan);
  run.plan_text = scheduler::plan_text(generation.roster.plan);
  run.left_out = generation.left_out;
  const auto on_disk = ports.head.read();
  const auto stored = head_in(view);
  if (stored && on_disk) {
    const auto is_behind = is_store_behind(view, *stored, *on_disk);
    if (!is_behind) return is_behind.error().code == ErrorCode::kDataLoss ? Status(is_behind.error()) : Status();
    if (*is_behind) return store_is_behind(*stored, **on_disk);
  }
  std::optional<storage::CatalogEntry> parent;
  if (!stored || *stored) {
    const auto manifest = stored ? storage::read_manifest(ports, **stored) : Result<storage::Manifest>(stored.error());
    if (!manifest) {
      on_event_(LogLine("cannot_commit").add("reason", manifest.error().message).text());
      term_ = std::make_unique<Term>(Term{generation, std::move(right), nullptr, nullptr, std::nullopt});
      return {};
    }
    // A leader that died may have told neither the mirror nor the commit record.
    bring_forward(ports.head, **stored);
    (void)storage::keep_commit_record(ports, **stored);
    // A job that fell back to an older checkpoint has made none of its own yet.
    const bool fell_back = on_disk && *on_disk && (*on_disk)->sequence > (*stored)->sequence;
    run.found = fell_back ? *on_disk : *stored;
    parent = storage::CatalogEntry{**stored, *manifest};
  }
  const auto committed = parent ? std::optional(parent->head.checkpoint.position) : std::nullopt;
  right.on_waiting = [this](const Error& error) {
    on_event_(LogLine("commit_waits").add("reason", error.line()).text());
  };
  right.is_over = [this] { return is_over_.load(); };
  auto head = make_kv_head_store(kv_, right, ports.documents, ports.seal, ports.head);
  const auto workers = static_cast<int>(generation.roster.plan.workers.size());
  auto committer = std::make_unique<trainer::CheckpointCommitter>(
      std::move(run), workers, facts_.retention, storage::CatalogPorts{ports.files, ports.documents, ports.seal, *head},
      std::move(parent), &facts_.curve);
  term_ = std::make_unique<Term>(Term{generation, std::move(right), std::move(head), std::move(committer), committed});
  return {};
}

// A committer may be in the middle of slow work, which the loop must not wait for.
void CommitRole::end() {
  if (!term_) return;
  pass_on_news();
  if (term_->committer) add(past_, term_->committer->counts());
  is_in_doubt_ = false;
  retired_.start([term = std::shared_ptr<Term>(std::move(term_))] { term->committer.reset(); });
  taken_.clear();
  collecting_.clear();
  untold_.clear();
}

void CommitRole::collect(const View& view) {
  const elastic::RosterRecord& roster = term_->generation.roster;
  const std::string prefix = facts_.keys.acks() + to_string(roster.attempt) + "/";
  for (const elastic::KeyValue* item : view.below(prefix)) {
    if (!taken_.insert(item->key).second) continue;
    const std::string_view key = item->key;
    const std::string_view rest = key.substr(prefix.size());
    const std::size_t slash = rest.find('/');
    const auto checkpoint = storage::parse_checkpoint_name(rest.substr(0, slash));
    const auto id = slash == std::string_view::npos ? std::nullopt : parse_worker_id(rest.substr(slash + 1));
    const auto ack = elastic::parse_ack(item->value);
    if (!checkpoint || !id || !ack) continue;
    // A leader before this one committed it, and could not tell.
    if (checkpoint->generation == roster.attempt.generation && checkpoint->position <= term_->committed) continue;
    const auto worker = std::find(roster.plan.workers.begin(), roster.plan.workers.end(), *id);
    if (worker == roster.plan.workers.end()) continue;
    const auto rank = static_cast<int>(worker - roster.plan.workers.begin());
    const bool is_new = collecting_.insert(to_string(*checkpoint)).second;
    if (!term_->committer) {
      if (is_new) untold_.push_back({*checkpoint, trainer::Verdict::Kind::kAbandoned});
      continue;
    }
    const auto shard = storage::parse_writer_tag(ack->shard);
    if (shard) {
      term_->committer->take(rank, trainer::ShardSaved{*checkpoint, *shard, ack->seconds});
    } else {
      term_->committer->take(rank, trainer::SaveFailed{*checkpoint, {ErrorCode::kUnavailable, ack->error, ""}});
    }
  }
}

void CommitRole::pass_on_news() {
  if (!term_->committer) return;
  for (const trainer::CheckpointCommitter::News& news : term_->committer->take_news()) {
    if (news.verdict) untold_.push_back(*news.verdict);
    is_in_doubt_ = is_in_doubt_ || (news.verdict && news.verdict->kind != trainer::Verdict::Kind::kCommitted);
    if (!news.event.empty()) on_event_(news.event);
  }
}

// A commit is announced by HEAD itself; what came to nothing needs a word of its own. Acknowledgements have served.
void CommitRole::tell_verdicts() {
  while (!untold_.empty()) {
    const trainer::Verdict& verdict = untold_.front();
    const std::string name = to_string(verdict.checkpoint);
    elastic::Txn txn{{elastic::modified_at(facts_.keys.generation(), term_->right.generation)},
                     {elastic::remove_prefix(facts_.keys.acks(term_->generation.roster.attempt, name))}};
    if (verdict.kind != trainer::Verdict::Kind::kCommitted) {
      txn.then.push_back(elastic::put(facts_.keys.abandoned_save(), name + " " + std::string(text_of(verdict.kind))));
    }
    if (!kv_.transact(txn, kCommitCallDeadline)) return;  // and try again at the next look
    collecting_.erase(name);
    untold_.erase(untold_.begin());
  }
}

trainer::CheckpointCounts CommitRole::counts() const {
  trainer::CheckpointCounts sum = past_;
  if (term_ && term_->committer) add(sum, term_->committer->counts());
  return sum;
}

}  // namespace everstep::launcher
