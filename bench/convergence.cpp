#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/text.h"
#include "bench/loss_plot.h"
#include "scheduler/schedule.h"
#include "trainer/data/open_data.h"
#include "trainer/loop/train_loop.h"
#include "trainer/threads/thread_transport.h"
#include "trainer/torch/torch_stage.h"

// Trains a small GPT with asynchronous schedules and synchronously, three seeds each, prints their final losses over
// the synchronous one, and draws those of AMDP: convergence CORPUS PICTURE [UPDATES [RATE]]
//
// What an asynchronous schedule costs grows with the learning rate, since that decides how far two versions of the
// weights are apart: the rate belongs to every figure made here.
namespace everstep::bench {
namespace {

using scheduler::ScheduleKind;
using scheduler::ScheduleRequest;
using trainer::TrainOptions;

constexpr double kGoal = 1.01;  // AMDP over synchronous
constexpr int kWindow = 16;
constexpr std::uint64_t kSeeds[] = {1, 2, 3};

struct Experiment {
  std::string corpus;
  std::int64_t updates = 500;
  double rate = 3e-4;
};

ScheduleRequest at_depth_4(ScheduleKind kind) {
  ScheduleRequest request;
  request.kind = kind;
  request.depth = 4;
  request.window = kWindow;
  return request;
}

ScheduleRequest clockwork(int depth, int pipelines, int lag) {
  ScheduleRequest request = at_depth_4(ScheduleKind::kClockwork);
  request.depth = depth;
  request.pipelines = pipelines;
  request.lag = lag;
  return request;
}

// With a provisional step that leaves out as little as it can.
ScheduleRequest provisional(ScheduleRequest request) {
  request.provisional = scheduler::provisional_range(request).fewest;
  return request;
}

struct Variant {
  const char* name;
  ScheduleRequest schedule;
};

std::vector<Variant> variants() {
  return {{"synchronous", at_depth_4(ScheduleKind::kAmdpSync)},
          {"AMDP", at_depth_4(ScheduleKind::kAmdp)},
          {"AMDP, provisional", provisional(at_depth_4(ScheduleKind::kAmdp))},
          {"D=4 P=2", clockwork(4, 2, 0)},
          {"D=4 P=2, provisional", provisional(clockwork(4, 2, 0))},
          {"D=4 P=2 lag=4", clockwork(4, 2, 4)},
          {"D=4 P=2 lag=4, provisional", provisional(clockwork(4, 2, 4))},
          {"D=3 P=1", clockwork(3, 1, 0)},
          {"D=3 P=1, provisional", provisional(clockwork(3, 1, 0))}};
}

TrainOptions options_of(const ScheduleRequest& schedule, std::uint64_t seed, const Experiment& experiment) {
  TrainOptions options;
  options.schedule = schedule;
  options.cuts = schedule.depth == 4 ? std::vector<int>{0, 2, 3, 4, 6} : std::vector<int>{0, 2, 4, 6};
  options.model.shape = {"small", scheduler::ModelFamily::kGpt, 4, 64, 4, 64, 256};
  options.model.minibatch = 2;
  options.model.seed = seed;
  const std::int64_t samples = experiment.updates * options.schedule.window * options.model.minibatch;
  options.learning_rate = {.peak = experiment.rate,
                           .floor = experiment.rate / 10,
                           .decay = trainer::Decay::kCosine,
                           .warmup_samples = samples / 20,
                           .total_samples = samples};
  options.steps = experiment.updates;
  return options;
}

// The loss of every update. Ends the program if training fails.
std::vector<double> losses_of(const TrainOptions& options, const std::string& corpus) {
  const auto data = trainer::open_data({.path = corpus, .validation_fraction = 0}, options.model).value();
  const int depth = options.schedule.depth;
  const auto transports = trainer::make_thread_transports(depth);
  std::vector<double> losses;
  std::vector<std::thread> workers;
  for (int worker = 0; worker < depth; ++worker) {
    workers.emplace_back([&, worker] {
      trainer::prepare_torch(1);
      trainer::TrainHooks hooks;
      hooks.now = [] { return Tick{std::chrono::steady_clock::now().time_since_epoch().count()}; };
      hooks.make_stage = trainer::make_torch_stage;
      hooks.initialise_weights = [&](const trainer::StageLayout& layout, const trainer::Buffer& weights) {
        trainer::initialise_weights(options.model, layout, weights);
      };
      if (worker == 0) hooks.on_step = [&](const trainer::StepReport& report) { losses.push_back(report.loss); };
      const auto result = trainer::train(options, *data, *transports[worker], hooks);
      EVERSTEP_CHECK(result.ok(), result.error().line());
      const Status closed = transports[worker]->close(std::chrono::seconds(60));
      EVERSTEP_CHECK(closed.ok(), closed.error().line());
    });
  }
  for (std::thread& worker : workers) worker.join();
  return losses;
}

int run(const Experiment& experiment, const std::string& picture) {
  trainer::prepare_torch(1);
  const std::vector<Variant> all = variants();
  std::printf("| final loss over synchronous |");
  for (const std::uint64_t seed : kSeeds) std::printf(" seed %d |", static_cast<int>(seed));
  std::printf(" mean |\n|---|");
  for (std::size_t column = 0; column <= std::size(kSeeds); ++column) std::printf("---:|");
  std::printf("\n");
  std::vector<LossPair> pairs(std::size(kSeeds));
  double worst = 0;
  for (const Variant& variant : all) {
    std::printf("| %s |", variant.name);
    double sum = 0;
    for (std::size_t i = 0; i < std::size(kSeeds); ++i) {
      std::vector<double> losses = losses_of(options_of(variant.schedule, kSeeds[i], experiment), experiment.corpus);
      const double loss = final_loss(losses);
      LossPair& pair = pairs[i];
      pair.seed = kSeeds[i];
      const bool is_synchronous = variant.schedule.kind == ScheduleKind::kAmdpSync;
      if (is_synchronous) pair.synchronous = std::move(losses);
      const double ratio = loss / final_loss(pair.synchronous);
      sum += ratio;
      std::printf(" %.4f |", is_synchronous ? loss : ratio);
      std::fflush(stdout);
      if (variant.schedule.kind != ScheduleKind::kAmdp || variant.schedule.provisional > 0) continue;
      worst = std::max(worst, ratio);
      pair.amdp = std::move(losses);
    }
    std::printf(" %.4f |\n", sum / static_cast<double>(std::size(kSeeds)));
    std::fflush(stdout);
  }
  std::ofstream file(picture);
  file << draw_losses(pairs, "GPT, 4 layers of 64; D = 4, T = 4; learning rate " + shortest_text(experiment.rate) +
                                 "; final losses are means of the last " + std::to_string(kFinalUpdates) + " updates");
  return file.good() && worst <= kGoal ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace everstep::bench

int main(int count, char** arguments) {
  if (count < 3 || count > 5) {
    std::fprintf(stderr, "usage: convergence CORPUS PICTURE [UPDATES [RATE]]\n");
    return EXIT_FAILURE;
  }
  everstep::bench::Experiment experiment;
  experiment.corpus = arguments[1];
  if (count > 3) experiment.updates = std::atoll(arguments[3]);
  if (count > 4) experiment.rate = std::atof(arguments[4]);
  return everstep::bench::run(experiment, arguments[2]);
}
