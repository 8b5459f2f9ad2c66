#include "launcher/rehearse/trace/trace_request.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "launcher/cli/files.h"
#include "launcher/cli/values.h"
#include "launcher/job/elastic_defaults.h"
#include "launcher/job/elastic_options.h"
#include "launcher/job/train_request.h"

namespace everstep::launcher {
namespace {

constexpr double kMsPerHour = 3.6e6;
constexpr std::string_view kForever = "1000000000";  // steps: the trace ends first

// Options of the job that are handed on to it, with what they are here if nobody says otherwise.
struct JobOption {
  std::string_view name;
  std::string_view default_text;  // empty: that of `everstep train`
};
constexpr std::array<JobOption, 13> kJobOptions{{{"emulate", "10:20"},
                                                 {"window", "32"},
                                                 {"shapes", ""},
                                                 {"redundancy", ""},
                                                 {"checkpoint-every", ""},
                                                 {"model", ""},
                                                 {"layers", "6"},
                                                 {"hidden", "32"},
                                                 {"heads", "2"},
                                                 {"sequence", "16"},
                                                 {"minibatch", "1"},
                                                 {"output", ""},
                                                 {"json", ""}}};

double seconds_of(std::chrono::milliseconds time) { return std::chrono::duration<double>(time).count(); }

Config default_train_config() {
  Config config;
  config.command = "replay-trace";
  for (const OptionSpec& option : train_options()) {
    config.settings.push_back({option.name, option.default_value(), Source::kDefault, 0});
  }
  return config;
}

Config train_config_of(const Config& config, const TraceRequest& request) {
  Config train = default_train_config();
  train.file_path = config.file_path;
  for (Setting& setting : train.settings) {
    const auto is_same = [&](const JobOption& option) { return option.name == setting.name; };
    if (std::any_of(kJobOptions.begin(), kJobOptions.end(), is_same)) setting = config.setting(setting.name);
  }
  if (!train.is_set("shapes")) set_setting(train, "shapes", trace_shapes(request.most_workers));
  set_setting(train, "workers", std::to_string(request.schedule.first_workers));
  set_setting(train, "steps", std::string(kForever));
  set_setting(train, "lease-ttl", std::to_string(request.limits.lease_ttl));
  set_setting(train, "join-debounce", shortest_text(request.limits.join_debounce));
  set_setting(train, "join-interval", shortest_text(request.limits.join_interval));
  return train;
}

// The first of these that leaves the fewest workers without a place. The model has eight blocks.
int trace_depth(int workers) {
  constexpr std::array kDepths{4, 3, 5, 7, 2};
  const auto left_over = [workers](int depth) { return depth > workers ? workers : workers % depth; };
  return *std::ranges::min_element(kDepths, {}, left_over);
}

Result<NodeTrace> read_trace(const std::string& path) {
  const auto text = read_file(path, scheduler::kMaxTraceBytes);
  if (!text) return text.error();
  auto trace = scheduler::parse_node_changes(*text);
  if (!trace) return invalid_argument(path + ": " + trace.error().message, trace.error().hint);
  return trace;
}

}  // namespace

ScaledLimits scaled_limits(double speedup) {
  const MembershipOptions defaults;
  const auto lease = static_cast<int>(std::ceil(static_cast<double>(defaults.lease_ttl.count()) / speedup));
  return {seconds_of(defaults.join_debounce) / speedup, seconds_of(defaults.join_interval) / speedup,
          std::max(kShortestLease, lease)};
}

std::string trace_shapes(int most_workers) {
  std::string shapes;
  for (int workers = 2; workers <= most_workers; ++workers) {
    const int depth = trace_depth(workers);
    shapes += (shapes.empty() ? "" : ",") + std::to_string(workers) + "=" + std::to_string(depth) + "x" +
              std::to_string(workers / depth);
  }
  return shapes;
}

std::vector<OptionSpec> trace_options() {
  std::vector<OptionSpec> options{
      {.name = "speedup", .value_name = "S", .default_text = "20", .help = "How many times as fast as it was"},
      {.name = "from", .value_name = "HOURS", .default_text = "0", .help = "Where in the trace to begin"},
      {.name = "hours", .value_name = "HOURS", .default_text = "1", .help = "How much of the trace to replay"},
      {.name = "busiest-hour", .help = "Begin where so many hours have the most changes, instead of --from"},
      {.name = "most-workers",
       .value_name = "N",
       .default_text = "16",
       .help = "Workers that stand for the nodes of the trace"},
      {.name = "notice",
       .value_name = "S",
       .default_text = "0",
       .help = "Seconds of the trace between SIGTERM and SIGKILL; 0: SIGKILL without notice"},
      {.name = "cost",
       .value_name = "SECONDS",
       .help = "Of a change, for the simulation to compare with; if not set, the mean of this run"},
  };
  const std::vector<OptionSpec> of_train = train_options();
  for (const auto& [name, default_text] : kJobOptions) {
    const OptionSpec* found = find_option(of_train, name);
    if (found == nullptr) continue;
    options.push_back(*found);
    if (!default_text.empty()) options.back().default_text = default_text;
  }
  return options;
}

TraceRequest read_trace_request(const Config& config, Outcome& failure) {
  TraceRequest request;
  Values values(config);
  request.path = config.positional.front();
  request.speedup = values.number("speedup", {.min = 1, .max = 1000});
  const double from = values.number("from", {.min = 0, .max = 1e6});
  const double hours = values.number("hours", {.min = 0, .max = 1e4, .above_min = true});
  const bool busiest = values.flag("busiest-hour");
  request.most_workers = static_cast<int>(values.integer("most-workers", {.min = 1, .max = kMostLocalWorkers}));
  request.notice = values.number("notice", {.min = 0, .max = 3600});
  if (config.is_set("cost")) request.cost = values.number("cost", {.min = 0, .max = 1e6});
  request.json = values.flag("json");
  failure = values.failure();
  if (failure) return request;
  if (busiest && config.setting("from").source != Source::kDefault) {
    failure = config.reject("from", "--busiest-hour says where to begin", "leave one of the two out");
    return request;
  }
  const auto trace = read_trace(request.path);
  if (!trace) {
    failure = Failure(trace.error(), ExitCode::kUsage);
    return request;
  }
  const std::int64_t duration = std::max<std::int64_t>(1, std::llround(hours * kMsPerHour));
  auto slice = busiest ? busiest_slice(*trace, duration) : slice_of(*trace, std::llround(from * kMsPerHour), duration);
  if (!slice) {
    failure =
        Failure(invalid_argument(request.path + ": " + slice.error().message, slice.error().hint), ExitCode::kUsage);
    return request;
  }
  request.slice = std::move(slice).value();
  request.schedule = map_to_workers(request.slice, request.most_workers);
  request.limits = scaled_limits(request.speedup);
  request.train = train_config_of(config, request);
  return request;
}

}  // namespace everstep::launcher
