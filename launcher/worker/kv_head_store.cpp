#include "launcher/worker/kv_head_store.h"

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

namespace everstep::launcher {
namespace {

using elastic::HeadCommit;
using std::chrono::milliseconds;
using storage::Head;

constexpr milliseconds kHeadDeadline{2000};
constexpr milliseconds kHeadPause{100};
// After so long without an answer the leader has lost its lease anyway.
constexpr std::chrono::seconds kHeadPatience{30};

class KvHeadStore final : public storage::HeadStore {
 public:
  KvHeadStore(elastic::KvStore& store, CommitRight right, const storage::DocumentFormat& documents,
              const storage::Seal& seal, storage::HeadStore& mirror)
      : store_(store), right_(std::move(right)), documents_(documents), seal_(seal), mirror_(mirror) {}

  Result<std::optional<Head>> read() const override {
    const auto found = read_key();
    if (!found) return found.error();
    if (!*found) return std::optional<Head>();
    auto head = parse(**found);
    if (!head) return head.error();
    return std::optional(std::move(head).value());
  }

  Status advance(const std::optional<Head>& expected, const Head& next) override {
    const auto found = read_key();
    if (!found) return found.error();
    if (*found) {
      const auto now = parse(**found);
      if (!now) return now.error();
      if (*now == next) return follow(next);  // an earlier try won
      if (*now != expected) return unexpected();
    } else if (expected) {
      return unexpected();
    }
    EVERSTEP_TRY(commit(*found ? (*found)->modified : 0, next));
    return follow(next);
  }

 private:
  Result<std::optional<elastic::KeyValue>> read_key() const {
    const auto reply = store_.transact({{}, {elastic::get(right_.keys.head())}}, kHeadDeadline);
    if (!reply) return Error{ErrorCode::kUnavailable, reply.error().message, reply.error().hint};
    if (!reply->forged.empty()) return Error{ErrorCode::kUnavailable, "HEAD in etcd is forged", ""};
    if (reply->reads[0].empty()) return std::optional<elastic::KeyValue>();
    return std::optional(reply->reads[0].front());
  }

  Result<Head> parse(const elastic::KeyValue& item) const {
    const auto record = elastic::parse_head_record(item.value);
    if (!record) return record.error();
    return stored_head(*record, documents_, seal_);
  }

  static Error overtaken() {
    return {ErrorCode::kStaleGeneration, "the job has a newer generation or another leader, which commits now", ""};
  }

  static Error unexpected() {
    return {ErrorCode::kUnavailable, "HEAD is not the checkpoint that this one descends from", ""};
  }

  Status commit(elastic::Revision seen, const Head& next) const {
    HeadCommit commit(right_.keys, {right_.generation, seen, right_.leader}, head_record(next, documents_, seal_),
                      right_.keys.acks(right_.attempt, to_string(next.checkpoint)));
    const auto give_up = std::chrono::steady_clock::now() + kHeadPatience;
    for (bool is_told = false; commit.state() == HeadCommit::State::kSending; is_told = true) {
      const auto reply = store_.transact(commit.transaction(), kHeadDeadline);
      if (commit.on_reply(reply) != HeadCommit::State::kSending) break;
      if (!is_told && right_.on_waiting) right_.on_waiting(reply.error());
      if (std::chrono::steady_clock::now() > give_up || (right_.is_over && right_.is_over())) {
        return Error{ErrorCode::kDeadlineExceeded, "etcd did not say what became of the commit", ""};
      }
      std::this_thread::sleep_for(kHeadPause);
    }
    switch (commit.state()) {
      case HeadCommit::State::kCommitted:
        return {};
      case HeadCommit::State::kOutdated:
        return unexpected();
      case HeadCommit::State::kUnknown:
        return Error{ErrorCode::kDeadlineExceeded, "nobody can say any more what became of the commit", ""};
      default:
        return overtaken();
    }
  }

  // The commit has happened: a mirror that lags is put right by the next one.
  Status follow(const Head& next) const {
    bring_forward(mirror_, next);
    return {};
  }

  elastic::KvStore& store_;
  const CommitRight right_;
  const storage::DocumentFormat& documents_;
  const storage::Seal& seal_;
  storage::HeadStore& mirror_;
};

}  // namespace

std::unique_ptr<storage::HeadStore> make_kv_head_store(elastic::KvStore& store, CommitRight right,
                                                       const storage::DocumentFormat& documents,
                                                       const storage::Seal& seal, storage::HeadStore& mirror) {
  return std::make_unique<KvHeadStore>(store, std::move(right), documents, seal, mirror);
}

elastic::HeadRecord head_record(const Head& head, const storage::DocumentFormat& documents, const storage::Seal& seal) {
  return {head.sequence, head.checkpoint.generation, head.checkpoint.position, to_string(head.manifest),
          seal.seal(documents.encode(head))};
}

void bring_forward(storage::HeadStore& mirror, const Head& head) {
  const auto now = mirror.read();
  const bool is_newer = now && *now && (*now)->sequence >= head.sequence;
  if (!is_newer) (void)mirror.advance(now ? *now : std::nullopt, head);
}

Result<Head> stored_head(const elastic::HeadRecord& record, const storage::DocumentFormat& documents,
                         const storage::Seal& seal) {
  const auto text = seal.open(record.document);
  if (!text) return text.error();
  return documents.parse_head(*text);
}

}  // namespace everstep::launcher
