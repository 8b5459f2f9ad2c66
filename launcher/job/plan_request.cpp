#include "launcher/job/plan_request.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "launcher/cli/nearest.h"
#include "launcher/job/compared_plan.h"
#include "scheduler/model_shape.h"

namespace everstep::launcher {
namespace {

using scheduler::PlanReport;
using scheduler::ScheduleKind;
using Workers = std::vector<scheduler::WorkerInfo>;

bool is_only_compared(ScheduleKind kind) { return kind == ScheduleKind::kGpipe || kind == ScheduleKind::kInterleaved; }

constexpr int kMostLag = 1'000'000;

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const scheduler::ModelShape& model : scheduler::named_models()) names.push_back(model.name);
  return names;
}

// What elsewhere is known by another name.
std::string model_meant(const std::string& name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kElsewhere{
      {{"gpt2", "gpt2-small"},
       {"gpt-2", "gpt2-small"},
       {"bert", "bert-base"},
       {"bert-base-uncased", "bert-base"},
       {"bert-large-uncased", "bert-large"}}};
  const auto* found =
      std::find_if(kElsewhere.begin(), kElsewhere.end(), [&](const auto& one) { return one.first == name; });
  return found == kElsewhere.end() ? nearest_name(name, model_names()) : std::string(found->second);
}

// Reads the options one group after the other; the first that does not fit becomes the failure.
class PlanReader {
 public:
  PlanReader(const Config& config, int most_workers) : config_(config), values_(config), most_workers_(most_workers) {}

  trainer::ModelConfig model() {
    trainer::ModelConfig model;
    model.shape = shape();
    model.next_sentence = values_.flag("next-sentence");
    model.dropout = values_.number("dropout", {.min = 0, .max = 0.99});
    model.precision =
        values_.choice("precision", {"fp32", "bf16"}) == 0 ? trainer::Precision::kFp32 : trainer::Precision::kBf16;
    model.recompute = values_.flag("recompute");
    model.minibatch = integer("minibatch", 1, 65536);
    model.seed = static_cast<std::uint64_t>(values_.integer("seed", {.min = 0}));
    if (model.next_sentence && model.shape.family != scheduler::ModelFamily::kBert) {
      refuse("next-sentence", "only BERT has this head");
    }
    return model;
  }

  scheduler::PlanOptions wishes(const scheduler::Hardware& hardware) {
    constexpr double kBytesPerGib = 1024.0 * 1024.0 * 1024.0;
    scheduler::PlanOptions wishes;
    wishes.window = integer("window", 1, 100'000);
    wishes.redundancy = integer("redundancy", 0, 64);
    wishes.synchronous = values_.flag("synchronous");
    constexpr std::array kProvisional{scheduler::ProvisionalWish::kOff, scheduler::ProvisionalWish::kAuto,
                                      scheduler::ProvisionalWish::kOn};
    wishes.provisional = kProvisional.at(values_.choice("provisional", {"off", "auto", "on"}));
    wishes.depth = wish("depth");
    wishes.width = wish("width");
    wishes.pipelines = wish("pipelines");
    wishes.kind = kind();
    if (config_.is_set("lag")) wishes.lag = integer("lag", 0, kMostLag);
    if (wishes.lag && wishes.kind != ScheduleKind::kClockwork) {
      refuse("lag", "only --schedule=clockwork can put its update off");
    }
    wishes.hardware = hardware;
    if (config_.is_set("memory-gib")) {
      const double gib = values_.number("memory-gib", {.min = 0, .max = 1e6, .above_min = true});
      wishes.hardware.memory_bytes = std::llround(gib * kBytesPerGib);
    }
    return wishes;
  }

  bool flag(std::string_view name) { return values_.flag(name); }

  void refuse(std::string_view name, std::string_view why, std::string hint = {}) {
    if (!failure()) failure_ = config_.reject(name, why, std::move(hint));
  }

  Outcome failure() const { return failure_ ? failure_ : values_.failure(); }

 private:
  int integer(std::string_view name, std::int64_t min, std::int64_t max) {
    return static_cast<int>(values_.integer(name, {.min = min, .max = max}));
  }

  // A number that the planner chooses when it is not set.
  std::optional<int> wish(std::string_view name) {
    return config_.is_set(name) ? std::optional(integer(name, 1, most_workers_)) : std::nullopt;
  }

  scheduler::ModelShape shape() {
    const std::string name = values_.text("model");
    auto found = scheduler::find_model(name);
    if (!found) {
      const std::string meant = did_you_mean(model_meant(name));
      refuse("model", "unknown model", meant.empty() ? found.error().hint : meant);
      return {};
    }
    scheduler::ModelShape shape = *found;
    const auto replace = [&](std::string_view option, int& size, int max) {
      if (config_.is_set(option)) size = integer(option, 1, max);
    };
    replace("layers", shape.layers, 10'000);
    replace("hidden", shape.hidden, 1 << 20);
    replace("heads", shape.heads, 1 << 20);
    replace("sequence", shape.sequence, 1 << 20);
    replace("vocabulary", shape.vocabulary, 1 << 24);
    return shape;
  }

  std::optional<ScheduleKind> kind() {
    if (!config_.is_set("schedule")) return std::nullopt;
    const auto parsed = scheduler::parse_schedule_kind(values_.text("schedule"));
    if (!parsed) {
      refuse("schedule", parsed.error().message, parsed.error().hint);
      return std::nullopt;
    }
    if (*parsed == ScheduleKind::kPipedream2bw) {
      refuse("schedule", "is there to compare with and cannot be trained: its stages update one by one",
             "use clockwork");
    }
    return *parsed;
  }

  const Config& config_;
  Values values_;
  const int most_workers_;
  Outcome failure_;
};

}  // namespace

Device cpu_device(std::int64_t memory_bytes) {
  Device device;
  // What one core reaches. Only the ratio of compute to messages depends on it.
  device.flops_per_second = 50e9;
  device.hardware.memory_bytes = memory_bytes;
  device.hardware.link_bytes_per_second = 8'000'000'000;
  device.hardware.link_latency = 50'000;
  device.hardware.memory_bytes_per_second = 10'000'000'000;
  return device;
}

Device gpu_device() {
  Device device;
  device.flops_per_second = 100e12;
  device.hardware.memory_bytes = std::int64_t{40} << 30;
  device.hardware.link_bytes_per_second = 12'500'000'000;
  device.hardware.link_latency = 20'000;
  device.hardware.memory_bytes_per_second = 1'000'000'000'000;
  return device;
}

std::vector<OptionSpec> shape_options() {
  return {
      {.name = "model",
       .value_name = "NAME",
       .default_text = "gpt2-tiny",
       .help = "Sizes: " + comma_list(model_names())},
      {.name = "layers",
       .value_name = "N",
       .help = "Transformer blocks, instead of the model's",
       .called_elsewhere = {"n-layer", "num-layers", "blocks"}},
      {.name = "hidden",
       .value_name = "N",
       .help = "Width of the model, instead of the model's",
       .called_elsewhere = {"n-embd", "hidden-size"}},
      {.name = "heads",
       .value_name = "N",
       .help = "Attention heads, instead of the model's",
       .called_elsewhere = {"n-head", "num-attention-heads"}},
      {.name = "sequence",
       .value_name = "N",
       .help = "Tokens per sequence, instead of the model's",
       .called_elsewhere = {"seq-length", "sequence-length", "block-size", "context"}},
      {.name = "vocabulary",
       .value_name = "N",
       .help = "Token ids, instead of the model's",
       .called_elsewhere = {"vocab-size"}},
      {.name = "next-sentence", .help = "BERT: also learn whether the second sentence follows the first"},
  };
}

std::vector<OptionSpec> model_options() {
  std::vector<OptionSpec> options = shape_options();
  const std::vector<OptionSpec> others{
      {.name = "dropout", .value_name = "X", .default_text = "0.1", .help = "Share of activations to drop"},
      {.name = "precision",
       .value_name = "P",
       .default_text = "fp32",
       .help = "fp32, or bf16 with an fp32 master",
       .called_elsewhere = {"dtype", "bf16", "fp16"}},
      {.name = "recompute",
       .help = "Keep only the inputs of blocks and run forwards again: slower, less memory",
       .on_resume = OnResume::kMayChange,
       .called_elsewhere = {"activation-checkpointing", "recompute-activations"}},
      {.name = "minibatch",
       .value_name = "B",
       .default_text = "4",
       .help = "Sequences per minibatch",
       .called_elsewhere = {"batch-size", "batch", "micro-batch-size", "microbatch"}},
      {.name = "seed", .value_name = "N", .default_text = "1", .help = "Seed of all random numbers"},
  };
  options.insert(options.end(), others.begin(), others.end());
  return options;
}

std::vector<OptionSpec> wish_options() {
  return {
      {.name = "schedule",
       .value_name = "KIND",
       .help =
           "clockwork, clockwork-sync, amdp, amdp-sync, 1f1b, two-directions, gpipe or interleaved; if not set, the "
           "fastest of clockwork, amdp, 1f1b and two-directions",
       .on_resume = OnResume::kMayChange,
       .called_elsewhere = {"kind"}},
      {.name = "depth",
       .value_name = "D",
       .help = "Workers of one group; if not set, the fastest",
       .on_resume = OnResume::kMayChange,
       .called_elsewhere = {"pipeline-model-parallel-size"}},
      {.name = "width",
       .value_name = "W",
       .help = "Groups; if not set, the fastest",
       .on_resume = OnResume::kMayChange,
       .called_elsewhere = {"data-parallel-size"}},
      {.name = "pipelines",
       .value_name = "P",
       .help =
           "Pipelines of one group: amdp has half as many as its depth, two-directions two, clockwork half as many, "
           "one, or what goes into the depth an even number of times, the others one; if not set, the fastest",
       .on_resume = OnResume::kMayChange},
      {.name = "lag",
       .value_name = "SLOTS",
       .help = "With --schedule=clockwork: how much later an update stands than it could, at most the depth, and as "
               "far as window and memory allow; if not set, what is fastest",
       .on_resume = OnResume::kMayChange},
      {.name = "window",
       .value_name = "M",
       .default_text = "16",
       .help = "Minibatches per update, over all workers",
       .called_elsewhere = {"batch-size", "global-batch-size", "gradient-accumulation-steps"}},
      {.name = "synchronous", .help = "No minibatch may meet two weight versions", .on_resume = OnResume::kMayChange},
      {.name = "provisional",
       .value_name = "WHEN",
       .default_text = "auto",
       .help =
           "amdp and clockwork: what a window runs before the update of the one before reads not the old weights, but "
           "those that its gradients so far would make; costs memory for one more copy of the weights and of the "
           "gradients, and traffic for both: off, on (no plan is made that has no memory for it), or auto (where it "
           "slows training by at most 1 %, and memory and the copies of --redundancy allow)",
       .on_resume = OnResume::kMayChange},
      {.name = "redundancy",
       .value_name = "K",
       .default_text = "1",
       .help = "So many workers may be lost at once without going back to a checkpoint: costs memory for one more "
               "copy of what each worker owns, and two on each of K others; 0: none",
       .on_resume = OnResume::kMayChange},
      {.name = "memory-gib",
       .value_name = "X",
       .help = "Memory of one worker for training; if not set, an equal share of the host's; with GPUs nine tenths of "
               "the smallest one's (everstep plan: 40)",
       .on_resume = OnResume::kAnew},  // this host's, not that of the old run
      {.name = "reproducible", .help = "Sum gradients so that no plan changes a bit"},
      {.name = "stash",
       .help = "amdp and clockwork: keep the old weights too, so that a backward uses those of its forward"},
  };
}

PlanRequest read_plan_request(const Config& config, const Device& device, int most_workers, Outcome& failure) {
  PlanReader reader(config, most_workers);
  PlanRequest request;
  request.wishes = reader.wishes(device.hardware);
  request.model = reader.model();
  request.stash = reader.flag("stash");
  if (reader.flag("reproducible")) request.accumulation = trainer::Accumulation::kFixedPoint;
  if (request.stash && !(request.wishes.kind && is_asynchronous(*request.wishes.kind))) {
    reader.refuse("stash", "only --schedule=amdp and --schedule=clockwork have two versions of the weights");
  }
  const bool is_synchronous =
      request.wishes.synchronous || (request.wishes.kind && !is_asynchronous(*request.wishes.kind));
  if (is_synchronous && request.wishes.provisional == scheduler::ProvisionalWish::kOn) {
    reader.refuse("provisional", "a synchronous schedule has no window that begins before the update of the one before",
                  "use --schedule=clockwork or --schedule=amdp");
  }
  if (request.stash) {
    if (request.wishes.provisional == scheduler::ProvisionalWish::kOn) {
      reader.refuse("provisional", "does not go with --stash, which keeps the old weights for the same minibatches",
                    "leave one of the two out");
    }
    request.wishes.provisional = scheduler::ProvisionalWish::kOff;
  }
  failure = reader.failure();
  request.emulation = read_emulation(config, failure);
  request.emulated_link = read_emulated_link(config, config.is_set("emulate"), failure);
  request.wishes.hardware = emulated_hardware(request.wishes.hardware, request.emulation, request.emulated_link);
  if (const Status checked = check(request.model); !failure && !checked) failure = Failure(checked.error());
  return request;
}

scheduler::ModelProfile planned_profile(const PlanRequest& request, double flops_per_second) {
  scheduler::ModelProfile profile = profile_of(request.model, request.accumulation, flops_per_second);
  if (request.stash) profile.weight_bytes *= 2;
  return emulated_profile(std::move(profile), request.emulation);
}

Result<PlanReport> report_plan(const scheduler::ModelProfile& profile, const Workers& workers,
                               const scheduler::PlanOptions& wishes) {
  EVERSTEP_TRY(check(profile));
  EVERSTEP_TRY(check(wishes.hardware));
  if (wishes.kind && is_only_compared(*wishes.kind)) return plan_to_compare_with(profile, workers, wishes);
  return plan(profile, workers, wishes);
}

std::vector<scheduler::WorkerInfo> unnamed_workers(int count, int per_host) {
  Workers workers;
  for (int i = 0; i < count; ++i) {
    std::string number = std::to_string(i / per_host);
    // Padded, so that the order of names is the order of numbers.
    number.insert(0, number.size() < 6 ? 6 - number.size() : 0, '0');
    workers.push_back({WorkerId{{0, static_cast<std::uint64_t>(i) + 1}}, "host-" + number});
  }
  return workers;
}

}  // namespace everstep::launcher
