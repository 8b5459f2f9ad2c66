#include "launcher/doctor/doctor.h"

#include <functional>
#include <optional>
#include <utility>

#include "base/log_line.h"
#include "base/text.h"
#include "launcher/cli/host.h"
#include "launcher/cli/long_work.h"
#include "launcher/cli/process_table.h"
#include "launcher/cli/progress_line.h"
#include "launcher/doctor/host.h"
#include "launcher/doctor/judgement.h"
#include "launcher/doctor/questions.h"
#include "launcher/doctor/recovery.h"
#include "launcher/doctor/training.h"
#include "storage/json/json_reader.h"

namespace everstep::launcher::doctor {
namespace {

using storage::Json;
using Checks = std::vector<Check>;

class Examination {
 public:
  Examination(const Wishes& wishes, Streams& streams)
      : wishes_(wishes), streams_(streams), line_(streams), place_{wishes.device, 0, wishes.directory} {}

  Result<Report> run() {
    const Tick begin = monotonic_now();
    adopt_orphans();
    report_.host = host_json(place_.directory);
    EVERSTEP_TRY(write_corpus(place_.directory));
    EVERSTEP_TRY(find_devices());
    EVERSTEP_TRY(make("operators", [this]() -> Result<Checks> {
      const auto answer = ask(place_, "operators");
      if (!answer) return answer.error();
      auto check = judge_operators(*answer);
      if (!check) return check.error();
      return Checks{std::move(*check)};
    }));
    EVERSTEP_TRY(make("blocks", [this]() -> Result<Checks> {
      const auto answer = ask(place_, "blocks");
      return answer ? judge_blocks(*answer) : answer.error();
    }));
    EVERSTEP_TRY(make("links", [this]() -> Result<Checks> {
      const auto answer = ask(place_, "links");
      return answer ? judge_links(*answer) : answer.error();
    }));
    EVERSTEP_TRY(make("reproducible", [this] { return check_bits(); }));
    EVERSTEP_TRY(make("memory", [this] { return check_memory(); }));
    EVERSTEP_TRY(make("throughput", [this] { return check_speed(); }));
    EVERSTEP_TRY(make("recovery", [this]() -> Result<Checks> {
      auto check = lose_a_worker(place_);
      if (!check) return check.error();
      return Checks{std::move(*check)};
    }));
    line_.clear();
    report_.device = place_.device_text();
    report_.seconds = to_seconds(monotonic_now() - begin);
    return std::move(report_);
  }

 private:
  // Runs a part unless it was left out. What it cannot find out is a check that has failed.
  Status make(const std::string& part, const std::function<Result<Checks>()>& work) {
    if (!wishes_.parts.contains(part)) return {};
    if (!has_device_) {
      add(not_checked(part, "there is no device"));
      return {};
    }
    line_.show("checking " + part);
    const Tick begin = monotonic_now();
    auto checks = work();
    if (!checks && checks.error().code == ErrorCode::kCancelled) return checks.error();
    if (!checks) checks = Checks{failed(part, checks.error().line())};
    checks->front().seconds = to_seconds(monotonic_now() - begin);
    for (Check& check : *checks) {
      if (check.health == Health::kFailed) check.logs = logs_of(part);
      add(std::move(check));
    }
    return {};
  }

  std::vector<LogTail> logs_of(const std::string& part) const {
    if (part == "recovery") return log_tails(place_.directory / "recovery");
    std::vector<std::filesystem::path> places{log_of(place_, part)};
    if (part == "reproducible" || part == "memory" || part == "throughput") {
      places = {place_.directory / kFirstRun, place_.directory / kSecondRun, log_of(place_, "profile")};
    }
    std::vector<LogTail> all;
    for (const auto& place : places) {
      for (LogTail& tail : log_tails(place)) all.push_back(std::move(tail));
    }
    return all;
  }

  void add(Check check) {
    line_.clear();
    LogLine event("check");
    event.add("name", check.name).add("result", to_string(check.health));
    if (!check.figure.empty()) event.add("figure", check.figure);
    if (!check.reason.empty()) event.add("reason", check.reason);
    print_event(streams_, event.add("seconds", fixed_text(check.seconds, 1)).text());
    report_.checks.push_back(std::move(check));
  }

  Status find_devices() {
    const bool any = place_.device.kind == kAnyDevice;
    if (any) place_.device = {"cuda"};
    line_.show("looking for devices");
    const Tick begin = monotonic_now();
    auto answer = ask(place_, "devices");
    std::string missing;
    if (!answer && any && answer.error().code == ErrorCode::kNotFound) {
      const std::string& why = answer.error().message;
      missing = (why.starts_with("no GPU was found") ? why : "no GPU was found (" + why + ")") + "; ";
      place_.device = {kHostDevice};
      answer = ask(place_, "devices");
    }
    if (!answer && answer.error().code == ErrorCode::kCancelled) return answer.error();
    auto check = answer ? judge_devices(*answer, missing) : Result<Check>(answer.error());
    if (!check) {
      has_device_ = false;
      check = failed("devices", check.error().line());
      check->logs = log_tails(log_of(place_, "devices"));
    }
    check->seconds = to_seconds(monotonic_now() - begin);
    add(std::move(*check));
    return {};
  }

  Result<Check> judge_devices(const Json& answer, const std::string& missing) {
    const auto devices = storage::JsonReader(answer).elements_at("devices");
    if (!devices) return devices.error();
    for (const char* fact : {"provenance", "nccl"}) {
      if (const Json* found = answer.find(fact)) report_.host.set(fact, *found);
    }
    report_.host.set("workers_set", worker_variables(place_.device.kind));
    Check check = checked("devices", missing + processor_text(), "", "");
    check.facts = answer;
    if (place_.device.is_host()) return check;
    place_.devices = place_.device.number ? 1 : static_cast<int>(devices->size());
    const auto& first = (*devices)[static_cast<std::size_t>(place_.device.number.value_or(0))];
    const auto name = first.text_at("name");
    const auto memory = first.integer_at("memory_bytes", 0);
    if (!name || !memory) return first.error("a device has a name and memory");
    check.figure = std::to_string(place_.devices) + " x " + (name->empty() ? place_.device.kind : *name) + ", " +
                   size_text(static_cast<std::uint64_t>(*memory));
    check.limit = "at least 1";
    return check;
  }

  // Several checks want it.
  Result<TrainingRun> first_run() {
    if (!first_run_) first_run_ = train_once(place_, kFirstRun);
    return *first_run_;
  }

  Result<Checks> check_bits() {
    const auto first = first_run();
    if (!first) return first.error();
    const auto second = train_once(place_, kSecondRun);
    if (!second) return second.error();
    const auto compared = compare_runs(*first, *second, streams_);
    if (!compared) return compared.error();
    return Checks{judge_bits(*compared)};
  }

  Result<Checks> check_memory() {
    const auto run = first_run();
    if (!run) return run.error();
    return Checks{judge_memory(run->taken_bytes, run->predicted_bytes)};
  }

  Result<Checks> check_speed() {
    const auto run = first_run();
    if (!run) return run.error();
    const auto answer = ask(place_, "profile");
    if (!answer) return answer.error();
    const auto predicted = predict_speed(place_, *run, *answer);
    if (!predicted) return predicted.error();
    Checks checks{judge_speed(run->tokens_per_s, predicted->tokens_per_s, predicted->devices)};
    checks.front().facts.set("profiles", *answer->find("profiles")).set("workers", run->workers);
    return checks;
  }

  static constexpr const char* kFirstRun = "train-1";
  static constexpr const char* kSecondRun = "train-2";

  const Wishes& wishes_;
  Streams& streams_;
  ProgressLine line_;
  Place place_;
  bool has_device_ = true;
  std::optional<Result<TrainingRun>> first_run_;
  Report report_;
};

}  // namespace

const std::vector<std::string>& all_parts() {
  static const std::vector<std::string> parts{"operators", "blocks",     "links",   "reproducible",
                                              "memory",    "throughput", "recovery"};
  return parts;
}

Result<Report> examine(const Wishes& wishes, Streams& streams) { return Examination(wishes, streams).run(); }

}  // namespace everstep::launcher::doctor
