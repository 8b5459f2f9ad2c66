#include "launcher/job/checkpoint_session.h"

#include <algorithm>
#include <utility>

#include "base/log_line.h"
#include "base/version.h"
#include "launcher/cli/long_work.h"
#include "launcher/job/data_digest.h"
#include "launcher/job/resume_rules.h"
#include "launcher/job/secret_check.h"
#include "launcher/job/store_options.h"
#include "scheduler/plan_text.h"
#include "storage/hdf5/hdf5_format.h"
#include "trainer/checkpoints/state_tensors.h"

namespace everstep::launcher {
namespace {

using Kind = ResumeWish::Kind;

Result<storage::CatalogEntry> find_newest(std::optional<Version> step, Streams& streams, CheckpointSession& session) {
  const storage::Catalog& catalog = session.store->catalog();
  const auto on_damage = [&](const storage::Damage& damage) {
    LogLine event("checkpoint_damaged");
    event.add("checkpoint", damage.checkpoint).add("reason", damage.error.message);
    if (damage.name) {
      event.add("position", damage.name->position.value);
      session.rejected.push_back(*damage.name);
    }
    print_event(streams, event.text());
  };
  const auto accept = [&](const storage::CatalogEntry& entry) -> Status {
    LongWork work(streams, "verifying", entry.manifest.bytes());
    const Status verified = catalog.verify(entry, [&](std::uint64_t bytes) { return work.advance_to(bytes); });
    return work.is_stopped() ? Status(work.stopped_error()) : verified;
  };
  return catalog.newest_accepted(step, accept, on_damage);
}

Outcome find_start(const Config& config, const CheckpointRequest& request, Streams& streams,
                   CheckpointSession& session) {
  const storage::Catalog& catalog = session.store->catalog();
  const auto listing = catalog.list();
  if (!listing) return config.blame("checkpoint-dir", listing.error());
  session.found = listing->newest;
  const bool is_empty = listing->entries.empty() && listing->damaged.empty();
  if (request.resume.kind == Kind::kNever) {
    if (is_empty) return {};
    return config.reject("checkpoint-dir", request.store.path() + " already holds checkpoints",
                         "--resume goes on from the newest; or name another --job");
  }
  if (request.resume.kind == Kind::kAuto && is_empty) return {};
  const bool has_step = request.resume.kind == Kind::kStep;
  const std::string wanted = has_step ? std::to_string(request.resume.step) : "newest";
  if (auto failure = check_secret(config, request.store, wanted)) return failure;
  auto found = find_newest(has_step ? std::optional(Version{request.resume.step}) : std::nullopt, streams, session);
  if (!found) return config.blame("resume", found.error());
  session.start = std::move(found).value();
  return {};
}

// A job that is to be resumed must be there; else its directory is made.
Outcome open_store(const Config& config, const CheckpointRequest& request, CheckpointSession& session) {
  const bool must_exist = request.resume.kind == Kind::kNewest || request.resume.kind == Kind::kStep;
  auto store = open_checkpoint_store(request.store, must_exist ? StoreAccess::kExisting : StoreAccess::kCreate);
  if (!store) return blame_store(config, store.error());
  session.store = std::move(store).value();
  auto lock = session.store->catalog().lock();
  if (!lock) return config.blame("checkpoint-dir", lock.error());
  session.lock = std::move(lock).value();
  return {};
}

Outcome check_settings(const Config& config, const TrainRequest& request, Streams& streams,
                       CheckpointSession& session) {
  std::string digest;
  if (request.data) {
    auto computed = data_digest(request.data->path, session.store->files().hashing);
    if (!computed) return config.blame("data", computed.error());
    digest = std::move(computed).value();
  }
  session.config = config;
  if (session.start) session.config = with_stored_rate_steps(config, session.start->manifest.configuration);
  session.settings = stored_settings(session.config, digest);
  if (!session.start) return {};
  const storage::Settings& stored = session.start->manifest.configuration;
  const Status same = check_same_settings(stored, session.settings);
  if (!same) return config.blame("resume", same.error());
  if (const auto event = rate_steps_event(session.config, stored)) print_event(streams, *event);
  return {};
}

// Making the lineage's directory shows that the place can be written to, before hours of training do.
Outcome check_disk(const Config& config, const TrainRequest& request, const CheckpointSession& session) {
  storage::FileSystem& files = session.store->files().files;
  const std::string directory = storage::directory_of(session.lineage, {});
  if (const Status made = files.make_directories(directory.substr(0, directory.find('/'))); !made) {
    return config.blame("checkpoint-dir", made.error());
  }
  const auto free = files.free_bytes();
  if (!free) return config.blame("checkpoint-dir", free.error());
  const auto listing = session.store->catalog().list();
  const std::int64_t present = listing ? std::ssize(listing->entries) : 0;
  const std::int64_t missing = std::max<std::int64_t>(1, request.checkpoints->retention.keep_last + 1 - present);
  const std::uint64_t needed = largest_checkpoint_bytes(request.options) * static_cast<std::uint64_t>(missing);
  if (*free >= needed) return {};
  return config.reject("checkpoint-dir",
                       "has " + size_text(*free) + " of free space; " + std::to_string(missing) +
                           " more checkpoints need up to " + size_text(needed),
                       "free some, use another disk, or a smaller --keep-last");
}

}  // namespace

std::uint64_t largest_checkpoint_bytes(const trainer::TrainOptions& options) {
  std::int64_t parameters = 0;
  for (int block = 0; block < options.model.blocks(); ++block) {
    for (const trainer::ParameterSpec& parameter : parameters_of(options.model, block)) {
      parameters += parameter.elements();
    }
  }
  const std::size_t weights = options.model.weight_bytes();
  const std::size_t sum = options.accumulation == trainer::Accumulation::kFixedPoint ? 8 : 4;
  const std::size_t besides = options.checkpoints.every_rounds > 0 ? std::max(weights, sum) : weights;
  const std::size_t moments = options.model.precision == trainer::Precision::kBf16 ? 12 : 8;
  constexpr std::uint64_t kHeadersPerBlock = 16 << 10;
  return static_cast<std::uint64_t>(parameters) * (weights + besides + moments) +
         static_cast<std::uint64_t>(options.model.blocks()) * kHeadersPerBlock;
}

Outcome open_session(const Config& config, const TrainRequest& request, const TrainPlan& plan, std::uint64_t lineage,
                     Streams& streams, CheckpointSession& session) {
  const CheckpointRequest& checkpoints = *request.checkpoints;
  Outcome failure = open_store(config, checkpoints, session);
  if (!failure) failure = find_start(config, checkpoints, streams, session);
  if (failure) return failure;
  session.lineage = session.start ? session.start->manifest.lineage : lineage;
  if (session.start) session.continues_live = resume_point(session.start->manifest, plan.plan).continues_live;
  const auto generation = session.store->catalog().next_generation();
  if (!generation) return config.blame("checkpoint-dir", generation.error());
  session.generation = *generation;
  failure = check_settings(config, request, streams, session);
  if (!failure) failure = check_disk(config, request, session);
  return failure;
}

trainer::RunFacts facts_of(const CheckpointSession& session, const TrainRequest& request, const TrainPlan& plan) {
  trainer::RunFacts facts;
  facts.job = request.checkpoints->store.job;
  facts.lineage = session.lineage;
  facts.generation = session.generation;
  facts.plan = trainer::stored_plan(plan.plan);
  facts.plan_text = scheduler::plan_text(plan.plan);
  facts.blocks = request.options.model.blocks();
  facts.accumulation = trainer::accumulation_name(request.options.accumulation);
  facts.found = session.found;
  facts.rejected = session.rejected;
  facts.configuration = session.settings;
  facts.provenance = {{"everstep", std::string(kVersion)}, {"hdf5", storage::hdf5_version()}};
  return facts;
}

std::string resumed_event(const CheckpointSession& session, const TrainPlan& plan) {
  const storage::Manifest& manifest = session.start->manifest;
  const bool is_live = manifest.is_live();
  return LogLine("resumed")
      .add("step", manifest.version.value)
      .add("position", manifest.name.position.value)
      .add("kind", to_string(trainer::cut_kind_of(manifest)))
      .add("plan", manifest.plan == trainer::stored_plan(plan.plan) ? "same" : "changed")
      .add("pipeline", session.continues_live ? "continued"
                       : is_live              ? "flushed"
                                              : "empty")
      .add("generation", session.generation.value)
      .text();
}

std::unique_ptr<Curve> make_curve(const TrainRequest& request, std::uint64_t lineage) {
  const trainer::TrainOptions& options = request.options;
  const std::int64_t samples = std::int64_t{request.plan.window} * options.model.minibatch;
  return std::make_unique<Curve>(
      request.checkpoints->store.path(), lineage,
      [rate = options.learning_rate, samples](std::int64_t step) { return rate.at(step * samples); });
}

}  // namespace everstep::launcher
