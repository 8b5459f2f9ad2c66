#include "launcher/proof/replay.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/text.h"
#include "launcher/cli/progress_line.h"
#include "launcher/job/device_options.h"
#include "launcher/job/stored_model.h"
#include "launcher/proof/replay_history.h"
#include "launcher/proof/stored_request.h"
#include "trainer/checkpoints/restore.h"

namespace everstep::launcher {
namespace {

using storage::Manifest;

constexpr int kReplayThreads = 2;

// "step 6", "step 6 and 3 minibatches"
std::string place_text(Position position, int window) {
  const std::int64_t inside = position.value % window;
  return "step " + std::to_string(position.value / window) +
         (inside == 0 ? "" : " and " + counted(inside, "minibatch", "minibatches"));
}

// What was computed on the CPU does not say so.
storage::Settings with_device(storage::Settings provenance) {
  if (setting_of(provenance, "device").empty()) provenance.emplace_back("device", kHostDevice);
  return provenance;
}

class Replay {
 public:
  Replay(CheckpointStore& store, const ReplayRequest& request, CommittedHistory history, Streams& streams)
      : store_(store), request_(request), history_(std::move(history)), line_(streams) {}

  Result<ReplayReport> run(const ReferenceHooks& hooks_of) {
    EVERSTEP_TRY(choose_start());
    auto asked = stored_request(history_.end.manifest, request_.data);
    if (!asked) return asked.error();
    EVERSTEP_TRY(check_same_data(history_.end.manifest, asked->data->path));
    options_ = asked->options;
    report_.exact = options_.accumulation == trainer::Accumulation::kFixedPoint;
    read_learning_rates();
    auto data = open_data(*asked->data, options_.model);
    if (!data) return data.error();
    reference_ = std::make_unique<trainer::ReferenceRun>(options_, **data, hooks_of(*asked));
    EVERSTEP_TRY(go_to_start());
    for (; next_ < history_.entries.size(); ++next_) {
      EVERSTEP_TRY(replay_entry(history_.entries[next_]));
      if (!report_.difference) EVERSTEP_TRY(compare_checkpoints());
      if (report_.difference) break;
    }
    line_.clear();
    if (report_.difference) report_.hint = possible_reason();
    return std::move(report_);
  }

 private:
  // A resumed run may let the learning rate end elsewhere. Of a generation without a checkpoint, the next one's.
  void read_learning_rates() {
    for (const auto& [position, entry] : history_.kept) {
      const auto asked = stored_request(entry.manifest, request_.data);
      if (!asked) continue;  // an imported model was never asked to train
      learning_rates_[entry.manifest.name.generation] = asked->options.learning_rate;
    }
  }

  // A checkpoint at the very beginning was imported.
  Status choose_start() {
    report_.window = history_.end.manifest.plan.window;
    report_.to = history_.end.manifest.name.position;
    const Position latest{request_.from_step.value_or(0) * report_.window};
    const auto after = history_.kept.upper_bound(latest);
    for (auto kept = after; kept != history_.kept.begin() && !start_;) {
      --kept;
      if (can_start_at(history_, kept->second.manifest)) start_ = kept->second.manifest;
    }
    if (start_) {
      report_.from = start_->name.position;
    } else if (latest.value > 0) {
      const std::string missing =
          after == history_.kept.begin() ? "is kept" : "has the weights that the window behind it began on";
      return not_found("no checkpoint of step " + std::to_string(*request_.from_step) + " or before " + missing,
                       "leave --from away to begin at the beginning");
    }
    if (report_.from < report_.to) return {};
    return not_found(
        "there is nothing to compare: the replay would start and end at " + place_text(report_.to, report_.window),
        "--from and --to each mean the newest checkpoint of that step or before");
  }

  Status go_to_start() {
    if (!start_) return {};
    while (reference_->position() < start_->name.position) {
      EVERSTEP_TRY(reference_->pass_over(history_.entries[next_++].what));
    }
    for (int block = 0; block < reference_->blocks(); ++block) {
      EVERSTEP_TRY(trainer::restore_stage(store_.files(), *start_, options_.model, options_.accumulation,
                                          reference_->layout(block), stored_part(*start_, reference_->state(block)),
                                          kReplayThreads));
    }
    trainer::ResumePoint point;
    point.position = start_->name.position;
    point.version = start_->version;
    point.applied = start_->applied;
    point.clip_scale = start_->clip_scale;
    point.continues_live = start_->is_live();
    point.continues_provisional = start_->has(storage::StateKind::kProvisional);
    for (const auto& [minibatch, loss] : start_->window_losses) point.losses.push_back({minibatch, loss});
    reference_->resume(point);
    return {};
  }

  Status replay_entry(const CommittedEntry& entry) {
    line_.show("replaying window " + std::to_string(entry.what.window) + " of " +
               std::to_string(history_.end.manifest.version.value));
    auto rate = learning_rates_.lower_bound(entry.what.generation);
    if (rate == learning_rates_.end()) --rate;
    reference_->set_learning_rate(rate->second);
    const auto step = reference_->run(entry.what);
    if (!step) return step.error();
    report_.difference = compare_losses(entry.losses, step->losses, entry.what, report_.exact);
    if (report_.difference) return {};
    report_.losses += std::ssize(step->losses);
    if (!step->update) return {};
    ++report_.windows;
    report_.difference = compare_update(entry.what, *step->update, report_.exact);
    return {};
  }

  Status compare_checkpoints() {
    const auto [first, end] = history_.kept.equal_range(reference_->position());
    for (auto kept = first; kept != end; ++kept) {
      auto difference = compare_state(store_, kept->second.manifest, options_, *reference_, report_.exact);
      if (!difference) return difference.error();
      report_.difference = std::move(*difference);
      if (report_.difference) return {};
      ++report_.checkpoints;
    }
    return {};
  }

  std::string possible_reason() const {
    std::string text;
    const storage::Settings facts_there = with_device(history_.end.manifest.provenance);
    for (const auto& [name, here] : with_device(request_.provenance)) {
      const std::string_view there = setting_of(facts_there, name);
      if (there.empty() || there == here) continue;
      if (!text.empty()) text += ", ";
      text.append(name).append(" was ").append(there).append(" and is ").append(here).append(" here");
    }
    return text.empty() ? text : "other kernels may give other bits: " + text;
  }

  CheckpointStore& store_;
  const ReplayRequest& request_;
  CommittedHistory history_;
  ProgressLine line_;
  trainer::TrainOptions options_;
  std::map<Generation, trainer::LearningRate> learning_rates_;
  std::unique_ptr<trainer::ReferenceRun> reference_;
  std::optional<Manifest> start_;  // nothing: the initial weights
  std::size_t next_ = 0;           // of the entries
  ReplayReport report_;
};

}  // namespace

Result<ReplayReport> replay(CheckpointStore& store, const ReplayRequest& request, const ReferenceHooks& hooks_of,
                            Streams& streams) {
  auto history = read_history(store.catalog(), request.to_step);
  if (!history) return history.error();
  return Replay(store, request, std::move(*history), streams).run(hooks_of);
}

std::string replay_text(const ReplayReport& report) {
  std::string text = "from " + place_text(report.from, report.window) + " to " + place_text(report.to, report.window) +
                     ": " + counted(report.windows, "window", "windows") + ", " +
                     counted(report.losses, "loss", "losses") + ", " +
                     counted(report.checkpoints, "checkpoint", "checkpoints") + ": ";
  if (report.difference) return text + "all equal, then " + *report.difference;
  if (report.exact) return text + "all bits equal";
  return text + "equal within " + shortest_text(kLossTolerance) +
         " (losses); without --reproducible bits depend on the order of sums";
}

storage::Json replay_json(const ReplayReport& report) {
  storage::Json json = storage::Json::object();
  json.set("good", !report.difference).set("exact", report.exact);
  json.set("from", report.from.value).set("to", report.to.value).set("windows", report.windows);
  json.set("losses", report.losses).set("checkpoints", report.checkpoints);
  return json.set("difference", report.difference ? storage::Json(*report.difference) : storage::Json(nullptr));
}

}  // namespace everstep::launcher
