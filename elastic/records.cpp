#include "elastic/records.h"

#include <algorithm>
#include <concepts>
#include <functional>
#include <type_traits>

#include "elastic/record_fields.h"

namespace everstep::elastic {
namespace {

constexpr std::array<std::string_view, 3> kMemberStates = {"warming", "ready", "leaving"};
constexpr std::array<std::string_view, 5> kOriginKinds = {"beginning", "checkpoint", "memory", "copies", "sums"};

// One description per record, for both directions: the record is const when it is written.
template <typename T, typename Record>
concept Of = std::same_as<std::remove_const_t<T>, Record>;

void describe(auto& fields, Of<JobSpec> auto& spec) {
  fields.hex("lineage", spec.lineage);
  fields.hex("creation", spec.creation);
  fields.field("build", spec.build);
  fields.field("data", spec.data_hash);
  fields.pairs("set", spec.settings);
}

void describe(auto& fields, Of<MemberRecord> auto& member) {
  fields.field("id", member.id);
  fields.field("name", member.name);
  fields.field("host", member.host);
  fields.field("address", member.address);
  fields.choice("state", member.state, kMemberStates);
  fields.field("leave_reason", member.leave_reason);
  fields.field("leave_ms", member.leave_ms);
}

void describe(auto& fields, Of<LeaderRecord> auto& leader) {
  fields.field("id", leader.id);
  fields.field("registered", leader.registered);
}

void describe(auto& fields, Of<HeadRecord> auto& head) {
  fields.field("sequence", head.sequence);
  fields.field("generation", head.generation);
  fields.field("position", head.position);
  fields.field("manifest", head.manifest);
  fields.field("document", head.document);
}

void describe_kind(FieldWriter& fields, const scheduler::Plan& plan) {
  fields.field("kind", std::string(to_string(plan.kind)));
}

void describe_kind(FieldReader& fields, scheduler::Plan& plan) {
  std::string text;
  fields.field("kind", text);
  const auto kind = scheduler::parse_schedule_kind(text);
  if (!kind) return fields.fail("kind");
  plan.kind = *kind;
}

void describe(auto& fields, Of<scheduler::Plan> auto& plan) {
  describe_kind(fields, plan);
  fields.field("depth", plan.depth);
  fields.field("pipelines", plan.pipelines);
  fields.field("width", plan.width);
  fields.field("window", plan.window);
  fields.field("preload", plan.preload);
  fields.field("lag", plan.lag);
  fields.field("provisional", plan.provisional);
  fields.numbers("cuts", plan.cuts);
  fields.list("worker", plan.workers);
  fields.list("spare", plan.spares);
  fields.lists("guards", plan.guards);
}

void describe(auto& fields, Of<RosterRecord> auto& roster) {
  fields.field("attempt", roster.attempt);
  describe(fields, roster.plan);
  fields.list("donor", roster.donors);
}

void describe(auto& fields, Of<HeldSums> auto& sums) {
  fields.field("kept_of", sums.of);
  fields.field("kept_at", sums.position);
  fields.field("group", sums.group);
  fields.field("rounds", sums.rounds);
}

void describe(auto& fields, Of<CopyHolder> auto& holder) {
  fields.field("holder", holder.id);
  fields.field("owned", holder.owned);
  fields.field("guarded", holder.guarded);
}

void describe(auto& fields, Of<HeldCopy> auto& copy) {
  fields.field("copy_of", copy.of);
  fields.field("at", copy.position);
  fields.field("owned", copy.owned);
  fields.field("guarded", copy.guarded);
}

void describe(auto& fields, Of<Position> auto& left_out) { fields.field("left_out", left_out); }

void describe(auto& fields, Of<AnomalyReport> auto& report) {
  fields.field("anomaly", report.window);
  fields.field("minibatch", report.minibatch);
  fields.field("suspect", report.suspect);
  fields.field("repeats", report.repeats);
  fields.field("norm_limit", report.norm_limit);
}

void describe(auto& fields, Of<AnomalyTrial> auto& trial) {
  describe(fields, trial.report);
  fields.field("failures", trial.failures);
  fields.field("convicts", trial.convicts);
  fields.field("skips", trial.skips);
}

// `name` tells whether there is one.
template <typename Record>
void describe_optional(FieldWriter& fields, std::string_view name, const std::optional<Record>& record) {
  fields.field(name, record.has_value());
  if (record) describe(fields, *record);
}

template <typename Record>
void describe_optional(FieldReader& fields, std::string_view name, std::optional<Record>& record) {
  bool is_there = false;
  fields.field(name, is_there);
  if (is_there) describe(fields, record.emplace());
}

// `first` names the first field of an item.
template <typename Item>
void describe_items(FieldWriter& fields, std::string_view /*first*/, const std::vector<Item>& items) {
  for (const Item& item : items) describe(fields, item);
}

template <typename Item>
void describe_items(FieldReader& fields, std::string_view first, std::vector<Item>& items) {
  while (fields.next_is(first)) {
    if (items.size() == kMostListItems) return fields.fail(first);
    describe(fields, items.emplace_back());
  }
}

void describe(auto& fields, Of<GenerationRecord> auto& generation) {
  describe(fields, generation.roster);
  fields.field("opener", generation.opener);
  fields.choice("base", generation.origin.kind, kOriginKinds);
  fields.field("position", generation.origin.position);
  fields.field("manifest", generation.origin.manifest);
  fields.field("group", generation.origin.group);
  fields.field("rounds", generation.origin.rounds);
  describe_optional(fields, "from", generation.from);
  fields.field("reason", generation.reason);
  describe_items(fields, "holder", generation.holders);
  describe_items(fields, "left_out", generation.left_out);
  describe_optional(fields, "tries", generation.trial);
  fields.field("heeds_from", generation.heeds_from);
}

void describe(auto& fields, Of<DrainRecord> auto& drain) {
  fields.field("attempt", drain.attempt);
  fields.field("inside_window", drain.inside_window);
  fields.field("stop_round", drain.stop_round);
  fields.field("saves", drain.saves);
  fields.field("ends_job", drain.ends_job);
  fields.field("asked", drain.asked);
  fields.field("reason", drain.reason);
}

void describe(auto& fields, Of<PreparedRecord> auto& prepared) {
  fields.field("connected", prepared.connected);
  fields.field("error", prepared.error);
}

void describe(auto& fields, Of<PromiseRecord> auto& promise) { fields.field("round", promise.round); }

void describe(auto& fields, Of<HeldRecord> auto& held) {
  fields.field("finished", held.finished);
  fields.field("position", held.position);
  fields.field("of", held.of);
  describe_items(fields, "copy_of", held.copies);
  describe_optional(fields, "failed", held.anomaly);
  describe_optional(fields, "kept", held.sums);
}

void describe(auto& fields, Of<SuspectRecord> auto& suspect) {
  fields.field("closed", suspect.closed);
  fields.field("reason", suspect.reason);
}

void describe(auto& fields, Of<AckRecord> auto& ack) {
  fields.field("shard", ack.shard);
  fields.field("error", ack.error);
  fields.field("seconds", ack.seconds);
}

void describe(auto& fields, Of<QuarantineRecord> auto& quarantine) {
  fields.field("strikes", quarantine.strikes);
  fields.field("seconds", quarantine.seconds);
}

void describe(auto& fields, Of<RequestRecord> auto& request) {
  fields.hex("id", request.id);
  fields.field("generation", request.generation);
  fields.field("reason", request.reason);
  fields.field("workers", request.workers);
}

void describe(auto& fields, Of<ProgressRecord> auto& progress) {
  fields.field("step", progress.step);
  fields.field("steps", progress.steps);
  fields.measured("loss", progress.loss);
  fields.field("tokens_per_second", progress.tokens_per_second);
  fields.field("busy", progress.busy);
  fields.field("goodput", progress.goodput);
  fields.field("state", progress.state);
  fields.numbers("computed_us", progress.computed_us);
  fields.field("generation", progress.generation);
  fields.field("updates", progress.updates);
  fields.field("update_us", progress.update_us);
  fields.numbers("stage_us", progress.stage_us);
  fields.numbers("slowness_percent", progress.slowness_percent);
  fields.field("switch_ms", progress.switch_ms);
  fields.field("learning_rate", progress.learning_rate);
  fields.measured("gradient_norm", progress.gradient_norm);
  fields.field("validation_loss", progress.validation_loss);
  fields.field("skipped", progress.skipped);
}

// So that a text that was cut off after a field that may be the last is not taken for a whole one.
constexpr std::string_view kLastLine = "end\n";

template <typename Record>
std::string write(const Record& record) {
  FieldWriter fields;
  describe(fields, record);
  return fields.text() + std::string(kLastLine);
}

Error damaged(std::string_view what, const std::string& why) {
  return {ErrorCode::kDataLoss, "cannot read a record of a " + std::string(what) + ": " + why,
          "was it written by another build?"};
}

// Why a record that could be read makes no sense all the same; empty if it does.
std::string flaw(const auto& /*record*/) { return {}; }

std::string flaw(const JobSpec& spec) {
  const bool ascending = std::is_sorted(spec.settings.begin(), spec.settings.end(),
                                        [](const auto& a, const auto& b) { return a.first <= b.first; });
  return ascending ? "" : "its settings are not in order";
}

std::string flaw(const RosterRecord& roster) {
  if (const Status plan = scheduler::check(roster.plan); !plan) return plan.error().message;
  std::vector<WorkerId> connected = roster.connected();
  std::sort(connected.begin(), connected.end());
  const bool repeats = std::adjacent_find(connected.begin(), connected.end()) != connected.end();
  return repeats ? "a worker is named twice" : "";
}

std::string flaw(const GenerationRecord& generation) {
  const Origin::Kind kind = generation.origin.kind;
  const bool is_in_memory =
      kind == Origin::Kind::kMemory || kind == Origin::Kind::kCopies || kind == Origin::Kind::kSums;
  if (generation.from.has_value() != is_in_memory || generation.holders.empty() != (kind != Origin::Kind::kCopies)) {
    return "it must say who holds its origin if and only if that is in memory";
  }
  if (std::ranges::adjacent_find(generation.left_out, std::greater_equal<>()) != generation.left_out.end()) {
    return "the minibatches that it leaves out are not in order";
  }
  for (const RosterRecord* roster : {&generation.roster, generation.from ? &*generation.from : nullptr}) {
    if (roster == nullptr) continue;
    if (std::string why = flaw(*roster); !why.empty()) return why;
  }
  const Origin& origin = generation.origin;
  const bool has_sums = origin.group != 0 || origin.rounds != 0;
  if (kind != Origin::Kind::kSums) return has_sums ? "only an origin of sums has a group that kept them" : "";
  const scheduler::Plan& plan = generation.from->plan;
  const bool makes_sense = origin.group >= 0 && origin.group < plan.width && origin.rounds > 0 &&
                           origin.rounds <= plan.window && origin.position.value % plan.window == 0;
  return makes_sense ? "" : "no group of its plan can have kept such sums";
}

// Refuses whatever write() would have put down in another way.
template <typename Record>
Result<Record> read(std::string_view text, std::string_view what) {
  if (!text.ends_with(kLastLine)) return damaged(what, "its end is missing");
  FieldReader fields(text.substr(0, text.size() - kLastLine.size()));
  Record record;
  describe(fields, record);
  if (!fields.ok()) return damaged(what, "its field '" + *fields.failed() + "' is missing or makes no sense");
  if (!fields.at_end()) return damaged(what, "something follows its last field");
  if (write(record) != text) return damaged(what, "it is not in the one form that records have");
  if (const std::string why = flaw(record); !why.empty()) return damaged(what, why);
  return record;
}

}  // namespace

bool has(const std::vector<WorkerId>& ids, const WorkerId& id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

std::vector<WorkerId> RosterRecord::connected() const {
  std::vector<WorkerId> all = plan.workers;
  all.insert(all.end(), donors.begin(), donors.end());
  return all;
}

bool RosterRecord::names(const WorkerId& id) const {
  const auto has = [&](const std::vector<WorkerId>& ids) { return std::find(ids.begin(), ids.end(), id) != ids.end(); };
  return has(plan.workers) || has(plan.spares) || has(donors);
}

std::string to_text(const JobSpec& spec) { return write(spec); }
std::string to_text(const MemberRecord& member) { return write(member); }
std::string to_text(const LeaderRecord& leader) { return write(leader); }
std::string to_text(const HeadRecord& head) { return write(head); }
std::string to_text(const RosterRecord& proposal) { return write(proposal); }
std::string to_text(const GenerationRecord& generation) { return write(generation); }
std::string to_text(const DrainRecord& drain) { return write(drain); }
std::string to_text(const PreparedRecord& prepared) { return write(prepared); }
std::string to_text(const PromiseRecord& promise) { return write(promise); }
std::string to_text(const HeldRecord& held) { return write(held); }
std::string to_text(const SuspectRecord& suspect) { return write(suspect); }
std::string to_text(const AckRecord& ack) { return write(ack); }
std::string to_text(const QuarantineRecord& quarantine) { return write(quarantine); }
std::string to_text(const RequestRecord& request) { return write(request); }
std::string to_text(const ProgressRecord& progress) { return write(progress); }

Result<JobSpec> parse_job_spec(std::string_view text) { return read<JobSpec>(text, "job's spec"); }
Result<MemberRecord> parse_member(std::string_view text) { return read<MemberRecord>(text, "member"); }
Result<LeaderRecord> parse_leader(std::string_view text) { return read<LeaderRecord>(text, "leader"); }
Result<HeadRecord> parse_head_record(std::string_view text) { return read<HeadRecord>(text, "HEAD"); }
Result<RosterRecord> parse_roster(std::string_view text) { return read<RosterRecord>(text, "proposal"); }
Result<GenerationRecord> parse_generation(std::string_view text) { return read<GenerationRecord>(text, "generation"); }
Result<DrainRecord> parse_drain(std::string_view text) { return read<DrainRecord>(text, "drain"); }
Result<PreparedRecord> parse_prepared(std::string_view text) { return read<PreparedRecord>(text, "prepared worker"); }
Result<PromiseRecord> parse_promise(std::string_view text) { return read<PromiseRecord>(text, "promise"); }
Result<HeldRecord> parse_held(std::string_view text) { return read<HeldRecord>(text, "worker's holdings"); }
Result<SuspectRecord> parse_suspect(std::string_view text) { return read<SuspectRecord>(text, "suspicion"); }
Result<AckRecord> parse_ack(std::string_view text) { return read<AckRecord>(text, "checkpoint's part"); }
Result<QuarantineRecord> parse_quarantine(std::string_view text) { return read<QuarantineRecord>(text, "quarantine"); }
Result<RequestRecord> parse_request(std::string_view text) { return read<RequestRecord>(text, "request"); }
Result<ProgressRecord> parse_progress(std::string_view text) { return read<ProgressRecord>(text, "job's progress"); }

}  // namespace everstep::elastic
