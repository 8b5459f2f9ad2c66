// Trains a small GPT or BERT once, in one process with a thread per worker, and prints the loss of every update as one
// line of JSON: convergence_run CORPUS [NAME=VALUE]…. With emulate=1 it prints instead how long an update takes on
// emulated devices. bench/convergence runs it over and over, and says what it is for.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "scheduler/schedule.h"
#include "trainer/data/open_data.h"
#include "trainer/emulated/emulated_stage.h"
#include "trainer/loop/train_loop.h"
#include "trainer/model/wrapped_stage.h"
#include "trainer/staging/emulated_link.h"
#include "trainer/threads/thread_transport.h"
#include "trainer/torch/torch_stage.h"

namespace everstep::bench {
namespace {

using scheduler::ModelFamily;
using scheduler::ScheduleRequest;
using trainer::Buffer;
using trainer::StageCompute;
using trainer::StageRequest;
using trainer::TrainHooks;
using trainer::TrainOptions;

constexpr int kWindow = 16;
constexpr int kBlocks = 6;                            // embedding, four transformer blocks, head
constexpr std::chrono::milliseconds kEmulatedOp{10};  // a forward, and each half of a backward

// What the command line may say, with what holds if it does not.
using Settings = std::map<std::string, std::string>;

Settings default_settings() {
  return {{"model", "gpt"}, {"schedule", "amdp-sync"}, {"depth", "4"},   {"pipelines", "0"},
          {"lag", "0"},     {"provisional", "0"},      {"stale", "0"},   {"rate", "3e-4"},
          {"seed", "1"},    {"updates", "500"},        {"emulate", "0"}, {"link-gbit", "0"}};
}

double number(const Settings& settings, const std::string& name) { return std::atof(settings.at(name).c_str()); }

int whole(const Settings& settings, const std::string& name) { return std::atoi(settings.at(name).c_str()); }

ScheduleRequest schedule_of(const Settings& settings) {
  ScheduleRequest request;
  request.kind = scheduler::parse_schedule_kind(settings.at("schedule")).value();
  request.depth = whole(settings, "depth");
  request.pipelines = whole(settings, "pipelines");
  request.lag = whole(settings, "lag");
  request.window = kWindow;
  if (whole(settings, "provisional") != 0) {
    const scheduler::ProvisionalRange range = provisional_range(request);
    EVERSTEP_CHECK(!range.empty(), "this schedule has no room for a provisional step");
    request.provisional = range.fewest;
  }
  return request;
}

TrainOptions options_of(const Settings& settings) {
  TrainOptions options;
  options.schedule = schedule_of(settings);
  const int stages = placement_of(options.schedule).value().stages();
  for (int stage = 0; stage <= stages; ++stage) options.cuts.push_back((stage * kBlocks + stages / 2) / stages);
  const bool is_bert = settings.at("model") == "bert";
  options.model.shape = {"small",
                         is_bert ? ModelFamily::kBert : ModelFamily::kGpt,
                         kBlocks - 2,
                         64,
                         4,
                         64,
                         is_bert ? 260 : 256};  // bytes, and BERT's four tokens of its own
  options.model.minibatch = 2;
  options.model.seed = static_cast<std::uint64_t>(whole(settings, "seed"));
  options.steps = whole(settings, "updates");
  const std::int64_t samples = options.steps * kWindow * options.model.minibatch;
  const double rate = number(settings, "rate");
  options.learning_rate = {.peak = rate,
                           .floor = rate / 10,
                           .decay = trainer::Decay::kCosine,
                           .warmup_samples = samples / 20,
                           .total_samples = samples};
  return options;
}

// The weights of one update before those in memory.
struct StaleWeights {
  Buffer newest;  // where the worker has them
  Buffer stale;   // what a stage reads
  Buffer before{};
  std::int64_t windows = 0;  // begun so far

  void begin_window() {
    trainer::copy_into(stale, windows == 0 ? newest : before);
    trainer::copy_into(before, newest);
    ++windows;
  }
};

// PipeDream-2BW's rule: every op of a window runs on the weights of one update before its own. It is laid over a
// synchronous schedule, whose workers begin a window only when they have its weights.
std::unique_ptr<StageCompute> make_stale_stage(const StageRequest& request) {
  StaleWeights weights{request.memory.weights, trainer::allocate_scratch(request.memory.weights.size)};
  StageRequest stale = request;
  stale.memory.weights = weights.stale;
  return wrap_ops(trainer::make_torch_stage(stale),
                  [weights](trainer::StageOp, Position position, const std::function<void()>& run) mutable {
                    if (position.value / kWindow == weights.windows) weights.begin_window();
                    run();
                  });
}

// How a worker computes: for real, or by waiting.
TrainHooks hooks_of(const Settings& settings, const TrainOptions& options) {
  TrainHooks hooks;
  hooks.now = [] { return Tick{std::chrono::steady_clock::now().time_since_epoch().count()}; };
  if (whole(settings, "emulate") != 0) {
    hooks.make_stage = [](const StageRequest& request) {
      return make_emulated_stage(request, {kEmulatedOp, kEmulatedOp, kEmulatedOp});
    };
    return hooks;
  }
  hooks.make_stage = whole(settings, "stale") != 0 ? make_stale_stage : trainer::make_torch_stage;
  hooks.initialise_weights = [&options](const trainer::StageLayout& layout, const Buffer& weights) {
    trainer::initialise_weights(options.model, layout, weights);
  };
  return hooks;
}

// Of every update. Ends the program if training fails.
std::vector<trainer::StepReport> train_all(const Settings& settings, const std::string& corpus) {
  const TrainOptions options = options_of(settings);
  const bool is_emulated = whole(settings, "emulate") != 0;
  const auto data = is_emulated ? trainer::make_emulated_data()
                                : trainer::open_data({.path = corpus, .validation_fraction = 0}, options.model).value();
  const auto transports = trainer::make_thread_transports(options.schedule.depth);
  const auto bytes_per_second = static_cast<std::int64_t>(number(settings, "link-gbit") * 1e9 / 8);
  std::vector<trainer::StepReport> reports;
  std::vector<std::thread> workers;
  for (int worker = 0; worker < options.schedule.depth; ++worker) {
    workers.emplace_back([&, worker] {
      trainer::prepare_torch(1);
      TrainHooks hooks = hooks_of(settings, options);
      if (worker == 0) hooks.on_step = [&](const trainer::StepReport& report) { reports.push_back(report); };
      const auto link = bytes_per_second > 0 ? make_emulated_link(*transports[worker], bytes_per_second) : nullptr;
      trainer::Transport& transport = link ? *link : *transports[worker];
      const auto result = trainer::train(options, *data, transport, hooks);
      EVERSTEP_CHECK(result.ok(), result.error().line());
      const Status closed = transport.close(std::chrono::seconds(60));
      EVERSTEP_CHECK(closed.ok(), closed.error().line());
    });
  }
  for (std::thread& worker : workers) worker.join();
  return reports;
}

void print_losses(const std::vector<trainer::StepReport>& reports) {
  std::printf("{\"losses\": [");
  for (std::size_t i = 0; i < reports.size(); ++i) std::printf("%s%.6f", i == 0 ? "" : ", ", reports[i].loss);
  std::printf("]}\n");
}

// The median, so that neither the start nor a hiccup of the machine counts.
void print_time_per_update(const std::vector<trainer::StepReport>& reports) {
  std::vector<double> times;
  for (std::size_t i = 1; i < reports.size(); ++i) times.push_back(to_seconds(reports[i].at - reports[i - 1].at));
  EVERSTEP_CHECK(!times.empty(), "a time needs two updates");
  std::ranges::nth_element(times, times.begin() + std::ssize(times) / 2);
  std::printf("{\"seconds_per_update\": %.6f}\n", times[times.size() / 2]);
}

int run(const std::vector<std::string>& words) {
  Settings settings = default_settings();
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const auto setting = settings.find(words[i].substr(0, equals));
    if (equals == std::string::npos || setting == settings.end()) {
      std::fprintf(stderr, "convergence_run: what is '%s'? The settings are", words[i].c_str());
      for (const auto& [name, value] : settings) std::fprintf(stderr, " %s=%s", name.c_str(), value.c_str());
      std::fprintf(stderr, "\n");
      return EXIT_FAILURE;
    }
    setting->second = words[i].substr(equals + 1);
  }
  trainer::prepare_torch(1);
  const std::vector<trainer::StepReport> reports = train_all(settings, words[0]);
  if (whole(settings, "emulate") != 0) {
    print_time_per_update(reports);
  } else {
    print_losses(reports);
  }
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace everstep::bench

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: convergence_run CORPUS [NAME=VALUE]…\n");
    return EXIT_FAILURE;
  }
  return everstep::bench::run({arguments + 1, arguments + count});
}
