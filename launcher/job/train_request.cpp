#include "launcher/job/train_request.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "launcher/cli/values.h"
#include "launcher/job/device_options.h"
#include "launcher/job/plan_request.h"
#include "scheduler/plan_reason.h"
#include "scheduler/plan_ways.h"
#include "trainer/checkpoints/checkpoint_writer.h"

namespace everstep::launcher {
namespace {

constexpr int kMost = 1'000'000;
constexpr std::int64_t kMostSteps = 1'000'000'000;

// "6=2x3"
std::optional<ForcedShape> parse_shape(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::size_t times = text.find('x');
  if (equals == std::string_view::npos || times == std::string_view::npos || times < equals) return std::nullopt;
  const auto workers = parse_number<int>(text.substr(0, equals));
  const auto depth = parse_number<int>(text.substr(equals + 1, times - equals - 1));
  const auto width = parse_number<int>(text.substr(times + 1));
  if (!workers || !depth || !width || *depth < 1 || *width < 1) return std::nullopt;
  if (std::int64_t{*depth} * *width > *workers || *workers > kMost) return std::nullopt;
  return ForcedShape{*workers, *depth, *width};
}

bool can_have_pipelines(int depth, const scheduler::PlanOptions& wishes) {
  const std::vector<int> possible = possible_pipelines(depth, wishes);
  return std::ranges::find(possible, *wishes.pipelines) != possible.end();
}

// Reads the options one group after the other; the first that does not fit becomes the failure.
class RequestReader {
 public:
  explicit RequestReader(const Config& config) : config_(config), values_(config) {}

  trainer::AdamOptions adam() {
    trainer::AdamOptions adam;
    adam.weight_decay = values_.number("weight-decay", {.min = 0, .max = 1e3});
    adam.beta1 = values_.number("beta1", {.min = 0, .max = 0.999999});
    adam.beta2 = values_.number("beta2", {.min = 0, .max = 0.999999});
    adam.clip_norm = values_.number("clip", {.min = 0, .max = 1e9});
    return adam;
  }

  trainer::LearningRate learning_rate(std::int64_t total_samples) {
    constexpr trainer::Decay kDecays[] = {trainer::Decay::kCosine, trainer::Decay::kLinear, trainer::Decay::kConstant};
    trainer::LearningRate rate;
    rate.peak = values_.number("lr", {.min = 0, .max = 1e3, .above_min = true});
    rate.floor = config_.is_set("min-lr") ? values_.number("min-lr", {.min = 0, .max = 1e3}) : rate.peak / 10;
    rate.decay = kDecays[values_.choice("lr-decay", {"cosine", "linear", "constant"})];
    rate.total_samples = std::max<std::int64_t>(1, total_samples);
    const double warmup = values_.number("warmup", {.min = 0, .max = 1});
    rate.warmup_samples = std::llround(warmup * static_cast<double>(rate.total_samples));
    if (rate.floor > rate.peak) refuse("min-lr", "is above --lr");
    return rate;
  }

  std::optional<trainer::DataOptions> data(bool emulated) {
    const std::vector<std::string> formats{"auto", "text", "bin", "bin32", "megatron"};
    const std::size_t format = values_.choice("data-format", formats);
    const double fraction = values_.number("validation-fraction", {.min = 0, .max = 0.9});
    if (emulated && !config_.is_set("data")) return std::nullopt;
    return trainer::DataOptions{values_.path("data"), *trainer::parse_data_format(formats[format]), fraction};
  }

  // Those that the kind and the number of pipelines, if they are asked for, can have: a job must not find out when
  // workers come or go.
  std::vector<ForcedShape> shapes(const scheduler::PlanOptions& wishes) {
    std::vector<ForcedShape> shapes;
    if (!config_.is_set("shapes")) return shapes;
    std::string rest = values_.text("shapes") + ",";
    for (std::size_t comma = rest.find(','); comma != std::string::npos; comma = rest.find(',')) {
      const auto shape = parse_shape(rest.substr(0, comma));
      if (!shape) {
        refuse("shapes", "expected workers=depth x width, with commas between them", "--shapes=2=2x1,6=2x3");
        return {};
      }
      const auto placement =
          scheduler::Placement::make(wishes.kind.value_or(scheduler::ScheduleKind::kOneFOneB), shape->depth);
      if (!placement) {
        refuse("shapes", placement.error().message, placement.error().hint);
        return {};
      }
      if (wishes.pipelines && !can_have_pipelines(shape->depth, wishes)) {
        refuse(
            "shapes",
            "depth " + std::to_string(shape->depth) + " cannot have --pipelines=" + std::to_string(*wishes.pipelines),
            scheduler::pipelines_hint(shape->depth, wishes));
        return {};
      }
      shapes.push_back(*shape);
      rest.erase(0, comma + 1);
    }
    return shapes;
  }

  int integer(std::string_view name, std::int64_t min, std::int64_t max) {
    return static_cast<int>(values_.integer(name, {.min = min, .max = max}));
  }

  void refuse(std::string_view name, std::string_view why, std::string hint = {}) {
    if (!failure()) failure_ = config_.reject(name, why, std::move(hint));
  }

  Values& values() { return values_; }
  Outcome failure() const { return failure_ ? failure_ : values_.failure(); }

 private:
  const Config& config_;
  Values values_;
  Outcome failure_;
};

// Half of what a checkpoint can hold, so that one save may fail. A window has at least one round.
Outcome check_interval(const Config& config, const trainer::CheckpointPolicy& policy, std::int64_t window) {
  const std::int64_t windows = std::max<std::int64_t>(policy.every_updates, policy.every_rounds);
  if (trainer::largest_history_bytes(windows, windows * window) <= trainer::kLargestHistory / 2) return {};
  return config.reject("checkpoint-every", "a checkpoint cannot hold the losses of so many minibatches",
                       "with --window=" + std::to_string(window) + " at most " +
                           std::to_string(trainer::kLargestHistory / 2 / trainer::largest_history_bytes(1, window)));
}

}  // namespace

TrainRequest read_train_request(const Config& config, std::int64_t host_memory_bytes, Outcome& failure) {
  RequestReader reader(config);
  TrainRequest request;
  request.workers = reader.integer("workers", 1, kMostLocalWorkers);
  failure = reader.failure();
  if (failure) return request;
  DeviceName device;
  failure = read_device_name(config, device);
  if (!failure && device.kind == kAnyDevice) {
    failure = config.reject("device", "only everstep train and everstep resume look for devices", "name the kind");
  }
  if (!failure) failure = read_transport(config, request.transport);
  if (failure) return request;
  request.device = device.kind;
  // One host: its workers share its memory.
  const Device reckoned = device.is_host() ? cpu_device(host_memory_bytes / request.workers) : gpu_device();
  PlanRequest plan = read_plan_request(config, reckoned, kMostLocalWorkers, failure);
  if (failure) return request;
  if (plan.wishes.kind && !is_trainable(*plan.wishes.kind)) {
    failure = config.reject("schedule", "can be drawn and planned with, but workers cannot run it", "use clockwork");
    return request;
  }
  request.plan = std::move(plan.wishes);
  request.shapes = reader.shapes(request.plan);
  request.emulation = plan.emulation;
  request.emulated_link = plan.emulated_link;
  request.data = reader.data(request.emulation.has_value());

  Values& values = reader.values();
  trainer::TrainOptions& options = request.options;
  options.model = std::move(plan.model);
  options.accumulation = plan.accumulation;
  options.stash = plan.stash;
  options.compare_replicas_every = values.integer("compare-replicas", {.min = 0});
  options.anomalies.explode_factor = values.number("explode", {.min = 0});
  if (options.anomalies.explode_factor > 0 && options.anomalies.explode_factor <= 1) {
    reader.refuse("explode", "every other gradient is larger than the median: it is more than 1, or 0 for none");
  }
  options.anomalies.most_in_a_row = values.integer("max-skipped-updates", {.min = 0});
  options.adam = reader.adam();
  options.steps = values.integer("steps", {.min = 1, .max = kMostSteps});
  const std::int64_t rate_steps =
      config.is_set("lr-steps") ? values.integer("lr-steps", {.min = 1, .max = kMostSteps}) : options.steps;
  options.learning_rate = reader.learning_rate(rate_steps * request.plan.window * options.model.minibatch);
  options.evaluate_every = values.integer("eval-every", {.min = 0});
  options.evaluate_minibatches = values.integer("eval-minibatches", {.min = 1, .max = kMost});
  options.peer_timeout =
      std::chrono::milliseconds(std::llround(1000 * values.number("timeout", {.min = 1, .max = 1e6})));

  if (config.is_set("output")) request.output = values.path("output");
  if (config.is_set("trace")) request.trace = values.path("trace");
  request.json = values.flag("json");
  failure = reader.failure();
  if (!failure) request.checkpoints = read_checkpoint_request(config, failure);
  if (failure) return request;
  if (request.checkpoints) {
    options.checkpoints = request.checkpoints->policy;
    failure = check_interval(config, options.checkpoints, request.plan.window);
  }
  if (const Status checked = check(options.learning_rate); !failure && !checked) failure = Failure(checked.error());
  return request;
}

}  // namespace everstep::launcher
