#include <algorithm>
#include <numeric>
#include <string>

#include "base/text.h"
#include "launcher/cli/nearest.h"
#include "launcher/cli/output_file.h"
#include "launcher/cli/values.h"
#include "launcher/commands/commands.h"
#include "scheduler/comparison.h"
#include "scheduler/draw/timeline_svg.h"
#include "scheduler/draw/timeline_text.h"
#include "scheduler/draw/timeline_trace.h"
#include "scheduler/schedule_summary.h"
#include "scheduler/validate.h"
#include "storage/json/json.h"

namespace everstep::launcher {
namespace {

using scheduler::Schedule;
using scheduler::ScheduleKind;
using scheduler::Timeline;
using scheduler::TimingModel;
using storage::Json;

constexpr std::int64_t kMostOps = 2'000'000;
constexpr double kMicrosecondsPerTick = 1000;  // a trace viewer knows no ticks

struct Request {
  scheduler::ScheduleRequest schedule;
  Tick forward = 1;
  Tick backward = 2;
  Tick weights = 1;
  Tick update = 1;
  int columns = 0;
  bool ops = false;
  bool json = false;
};

// All that one run of the command shows.
struct Drawn {
  Schedule schedule;
  Timeline timeline;
  scheduler::SteadyState steady;
};

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const ScheduleKind kind : scheduler::all_schedule_kinds()) names.emplace_back(to_string(kind));
  return names;
}

// What --provisional says about super-rounds that the step leaves out. Nothing: no number, and no word either.
std::optional<int> read_provisional(const std::string& text, const scheduler::ScheduleRequest& schedule) {
  const scheduler::ProvisionalRange range = provisional_range(schedule);
  if (text == "off" || (text == "auto" && range.empty())) return 0;
  if (text == "on" || text == "auto") return std::max(1, range.fewest);
  const auto number = parse_number<int>(text);
  return number && *number >= 0 ? number : std::nullopt;
}

Request read_request(const Config& config, Outcome& failure) {
  Values values(config);
  const auto integer = [&](std::string_view name, std::int64_t min, std::int64_t max) {
    return static_cast<int>(values.integer(name, {.min = min, .max = max}));
  };
  constexpr std::int64_t kMost = 1'000'000;
  Request request;
  scheduler::ScheduleRequest& schedule = request.schedule;
  const std::size_t kind = values.choice("schedule", kind_names());
  schedule.depth = integer("depth", 1, kMost);
  schedule.width = integer("width", 1, kMost);
  schedule.chunks_per_device = integer("chunks", 1, kMost);
  schedule.windows = integer("windows", 1, kMost);
  schedule.preload = integer("preload", 1, 2);
  schedule.pipelines = integer("pipelines", 0, kMost);
  schedule.lag = integer("lag", 0, kMost);
  schedule.first_minibatch = integer("first-minibatch", 0, kMost);
  schedule.capture_every_rounds = integer("capture-every", 0, kMost);
  if (config.is_set("stop-after-rounds")) schedule.stop_after_rounds = integer("stop-after-rounds", 1, kMost);
  // The default is filled in below, when depth and width are known to be good.
  if (config.is_set("window")) schedule.window = integer("window", 1, kMost);
  request.forward = integer("forward", 1, kMost);
  request.backward = integer("backward", 1, kMost);
  request.weights = config.is_set("weights") ? integer("weights", 0, request.backward) : request.backward / 2;
  request.update = integer("update", 0, kMost);
  request.columns = integer("columns", 10, 10'000);
  request.ops = values.flag("ops");
  request.json = values.flag("json");
  failure = values.failure();
  if (failure) return request;
  schedule.kind = scheduler::all_schedule_kinds()[kind];
  const std::int64_t workers = std::int64_t{schedule.depth} * schedule.width;
  if (!config.is_set("window")) schedule.window = static_cast<int>(std::min(4 * workers, kMost));
  if (const auto checked = check(schedule); checked) {
    const auto left_out = read_provisional(values.text("provisional"), schedule);
    if (!left_out) failure = config.reject("provisional", "expected off, auto, on or a number of super-rounds");
    schedule.provisional = left_out.value_or(0);
  }
  const int chunks = schedule.kind == ScheduleKind::kInterleaved ? schedule.chunks_per_device : 1;
  const double ops = 2.0 * schedule.windows * schedule.window * schedule.depth * chunks;
  if (ops > static_cast<double>(kMostOps)) {
    failure = config.reject(
        "depth", "the schedule would have " + fixed_text(ops, 0) + " ops, more than " + std::to_string(kMostOps),
        "use fewer stages, minibatches or windows");
  }
  if (request.ops && request.json) failure = config.reject("ops", "cannot be combined with --json");
  return request;
}

Result<Drawn> make_drawn(const Request& request) {
  auto schedule = make_schedule(request.schedule);
  if (!schedule) return schedule.error();
  const Status valid = validate(*schedule);
  if (!valid) return Error{ErrorCode::kInternal, valid.error().message, "please report it"};
  TimingModel model =
      TimingModel::uniform(schedule->placement.stages(), request.forward, request.backward, request.update);
  for (scheduler::StageCost& stage : model.stages) stage.weights = request.weights;
  const auto steady = steady_state(request.schedule, model);
  if (!steady) return steady.error();
  Timeline timeline = time_schedule(*schedule, model);
  return Drawn{*std::move(schedule), std::move(timeline), *steady};
}

// What does not fit together is wrong usage as soon as one part of it stood on the command line.
Failure shape_failure(const Config& config, const Error& error) {
  for (const char* option :
       {"schedule", "depth", "pipelines", "width", "window", "lag", "provisional", "chunks", "first-minibatch"}) {
    if (config.setting(option).source == Source::kFlag) return config.blame(option, error);
  }
  return error;
}

// One character per common unit of forward and backward (and of its halves), but at most four for the shortest of them.
Tick ticks_per_column(const Request& request) {
  constexpr Tick kMostColumns = 4;
  Tick shortest = std::min(request.forward, request.backward);
  Tick unit = std::gcd(request.forward, request.backward);
  if (splits_backwards(request.schedule.kind)) {
    for (const Tick half : {request.weights, request.backward - request.weights}) {
      unit = std::gcd(unit, half);
      if (half > 0) shortest = std::min(shortest, half);
    }
  }
  return std::max(unit, (shortest + kMostColumns - 1) / kMostColumns);
}

std::string summary_text(const Drawn& drawn) {
  const scheduler::InFlightPeak peak = in_flight_peak(drawn.schedule);
  std::string text = "busy        " + fixed_text(busy_share(drawn.timeline), 3) + " of " +
                     std::to_string(drawn.timeline.makespan) + " ticks; in steady state " +
                     fixed_text(drawn.steady.busy(), 3) + " of " + std::to_string(drawn.steady.window) +
                     " ticks per window\n";
  text += "in flight   at most " + std::to_string(peak.per_first_stage) + " minibatches at stage 0, " +
          std::to_string(peak.per_device) + " on a device\n";
  text += "mismatched  minibatches per window:";
  for (const int count : mismatched_minibatches(drawn.schedule)) text += " " + std::to_string(count);
  text += "\n";
  if (const auto summed = provisional_minibatches(drawn.schedule.request)) {
    text += "provisional P copies the sum of " + std::to_string(*summed) + " of " +
            std::to_string(drawn.schedule.request.window) +
            " minibatches, T takes the trial step, * does both, ^ reads what it gives\n";
  }
  if (const int left = drawn.schedule.remaining_in_window(); left > 0) {
    text += "left        " + std::to_string(left) + " minibatches of the window, for the next plan\n";
  }
  return text;
}

Json summary_json(const Drawn& drawn) {
  const scheduler::ScheduleRequest& request = drawn.schedule.request;
  const scheduler::InFlightPeak peak = in_flight_peak(drawn.schedule);
  Json mismatched = Json::array();
  for (const int count : mismatched_minibatches(drawn.schedule)) mismatched.append(count);
  Json json = Json::object();
  json.set("kind", to_string(request.kind)).set("depth", request.depth);
  json.set("pipelines", drawn.schedule.placement.pipelines()).set("width", request.width);
  json.set("window", request.window).set("windows", request.windows).set("lag", request.lag);
  if (request.provisional > 0) json.set("provisional", request.provisional);
  json.set("makespan_ticks", drawn.timeline.makespan).set("busy", busy_share(drawn.timeline));
  json.set("steady_window_ticks", drawn.steady.window).set("steady_busy", drawn.steady.busy());
  json.set("in_flight_first_stage", peak.per_first_stage).set("in_flight_device", peak.per_device);
  json.set("mismatched_minibatches", std::move(mismatched));
  json.set("next_position", drawn.schedule.next_position().value);
  return json.set("remaining_in_window", drawn.schedule.remaining_in_window());
}

Outcome check_outputs(const Config& config) {
  Values values(config);
  for (const char* option : {"svg", "trace"}) {
    if (config.is_set(option)) values.path(option);
  }
  if (values.failure()) return values.failure();
  const auto& svg = config.setting("svg").text;
  if (svg && svg == config.setting("trace").text) return config.reject("trace", "is the file that --svg names");
  return {};
}

Outcome write_outputs(const Config& config, const Drawn& drawn, Streams& streams) {
  if (config.is_set("svg")) {
    scheduler::SvgDrawing drawing;
    drawing.note = "in steady state busy " + fixed_text(100 * drawn.steady.busy(), 1) + " %";
    const std::string picture = draw_svg(drawn.schedule, drawn.timeline, drawing);
    if (auto failure = write_output_file(config, "svg", picture, streams)) return failure;
  }
  if (config.is_set("trace")) {
    const std::string trace = draw_trace(drawn.schedule, drawn.timeline, kMicrosecondsPerTick);
    return write_output_file(config, "trace", trace, streams);
  }
  return {};
}

Outcome print_comparison(const Config& config, Streams& streams) {
  for (const Setting& other : config.settings) {
    if (other.name != "compare" && other.source == Source::kFlag) {
      return config.reject(other.name, "cannot be combined with --compare");
    }
  }
  streams.out << to_markdown(scheduler::compare_schedules({4, 8, 16}, {1, 4}));
  return {};
}

Outcome run(const Config& config, Streams& streams) {
  Values values(config);
  const bool compare = values.flag("compare");
  if (values.failure()) return values.failure();
  if (compare) return print_comparison(config, streams);
  Outcome failure = check_outputs(config);
  if (failure) return failure;
  const Request request = read_request(config, failure);
  if (failure) return failure;
  const auto drawn = make_drawn(request);
  if (!drawn) return shape_failure(config, drawn.error());
  failure = write_outputs(config, *drawn, streams);
  if (failure) return failure;
  if (request.json) {
    streams.out << storage::to_text(summary_json(*drawn)) << "\n";
  } else if (request.ops) {
    streams.out << to_string(drawn->schedule);
  } else {
    streams.out << draw_text(drawn->schedule, drawn->timeline, {ticks_per_column(request), request.columns}) << "\n"
                << summary_text(*drawn);
  }
  return {};
}

Outcome check(const Config& config) {
  Outcome failure = check_outputs(config);
  if (!failure) read_request(config, failure);
  return failure;
}

}  // namespace

Command schedule_command() {
  CommandSpec spec;
  spec.name = "schedule";
  spec.summary = "Draw who does what when";
  spec.text =
      "Makes a schedule for equal stages on free links and draws its timeline: one row per device, a digit for the "
      "forward and a letter for the backward of a minibatch, U for an update, a dot for waiting. Where backwards are "
      "split, a small letter is the gradient of the input, and its capital letter those of the weights. Below stand "
      "the share of busy time, the time of one window, the minibatches in flight and how many met two weight "
      "versions. With --provisional each device has a second row: P copies the sum of a chunk for the provisional "
      "step, T takes the step, * does both, and ^ stands under what reads the weights that it gives.";
  spec.examples = {"everstep schedule --depth=8 --svg=clockwork.svg --trace=clockwork.json",
                   "everstep schedule --schedule=amdp --depth=4 --window=6 --windows=3 --ops",
                   "everstep schedule --compare"};
  spec.options = {
      {.name = "schedule",
       .value_name = "KIND",
       .default_text = "clockwork",
       .help = comma_list(kind_names()),
       .called_elsewhere = {"kind"}},
      {.name = "depth", .value_name = "D", .default_text = "8", .help = "Devices of one group"},
      {.name = "pipelines",
       .value_name = "P",
       .default_text = "0",
       .help = "Pipelines over these devices, clockwork only; 0 for half as many, or one if the depth is odd"},
      {.name = "width", .value_name = "W", .default_text = "1", .help = "Groups"},
      {.name = "window", .value_name = "M", .help = "Minibatches per update over all groups; if not set, 4 D W"},
      {.name = "windows", .value_name = "N", .default_text = "2", .help = "Windows to run"},
      {.name = "chunks", .value_name = "N", .default_text = "2", .help = "Stages per device, interleaved only"},
      {.name = "preload",
       .value_name = "N",
       .default_text = "2",
       .help = "Forwards before a round's last backward, 1 or 2"},
      {.name = "lag",
       .value_name = "SLOTS",
       .default_text = "0",
       .help = "How much later the update stands than it could, clockwork only"},
      {.name = "provisional",
       .value_name = "N",
       .default_text = "off",
       .help = "amdp and clockwork: what runs before an update reads the weights that the window's gradients so far "
               "would make, without those of its last N super-rounds; on: as few as can be left out; auto: the same "
               "where it is possible at all; off: the old weights"},
      {.name = "first-minibatch", .value_name = "N", .default_text = "0", .help = "Where the first window is resumed"},
      {.name = "stop-after-rounds", .value_name = "N", .help = "Drain after so many super-rounds of the last window"},
      {.name = "capture-every", .value_name = "N", .default_text = "0", .help = "Rounds between captures; 0 for none"},
      {.name = "forward", .value_name = "TICKS", .default_text = "1", .help = "Time of a forward"},
      {.name = "backward", .value_name = "TICKS", .default_text = "2", .help = "Time of a backward"},
      {.name = "weights",
       .value_name = "TICKS",
       .help = "Part of it for the gradients of weights, which clockwork computes later; if not set, half of it"},
      {.name = "update", .value_name = "TICKS", .default_text = "1", .help = "Time of an update"},
      {.name = "columns", .value_name = "N", .default_text = "160", .help = "Characters to draw at most"},
      {.name = "svg", .value_name = "FILE", .help = "Also write a picture", .command_line_only = true},
      {.name = "trace",
       .value_name = "FILE",
       .help = "Also write a trace for ui.perfetto.dev",
       .command_line_only = true},
      {.name = "ops", .help = "Print the lists of ops instead of the drawing"},
      {.name = "json", .help = "Print the figures as JSON instead of the drawing"},
      {.name = "compare", .help = "Print how all kinds compare, as Markdown, and nothing else"},
  };
  return {spec, run, {}, check};
}

}  // namespace everstep::launcher
