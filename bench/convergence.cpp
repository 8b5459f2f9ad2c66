#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "bench/loss_plot.h"
#include "trainer/data/open_data.h"
#include "trainer/loop/train_loop.h"
#include "trainer/threads/thread_transport.h"
#include "trainer/torch/torch_stage.h"

// Trains a small GPT with AMDP and with its synchronous twin, three seeds each, and draws the losses:
// convergence CORPUS PICTURE [UPDATES [RATE]]
//
// What AMDP costs grows with the learning rate, since it is the distance between two versions of the weights that a
// touched minibatch sees: the rate belongs to every figure made here.
namespace everstep::bench {
namespace {

using scheduler::ScheduleKind;
using trainer::TrainOptions;

constexpr int kDepth = 4;
constexpr double kGoal = 1.01;  // AMDP over synchronous
constexpr int kRoundsPerUpdate = 4;
constexpr std::uint64_t kSeeds[] = {1, 2, 3};

struct Experiment {
  std::string corpus;
  std::int64_t updates = 500;
  double rate = 3e-4;
};

TrainOptions options_of(ScheduleKind kind, std::uint64_t seed, const Experiment& experiment) {
  TrainOptions options;
  options.schedule.kind = kind;
  options.schedule.depth = kDepth;
  options.schedule.window = kRoundsPerUpdate * kDepth;
  options.cuts = {0, 2, 3, 4, 6};
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
  const auto transports = trainer::make_thread_transports(kDepth);
  std::vector<double> losses;
  std::vector<std::thread> workers;
  for (int worker = 0; worker < kDepth; ++worker) {
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
  std::printf("| seed | synchronous | AMDP | ratio |\n|---:|---:|---:|---:|\n");
  std::vector<LossPair> pairs;
  double worst = 0;
  for (const std::uint64_t seed : kSeeds) {
    LossPair& pair = pairs.emplace_back();
    pair.seed = seed;
    pair.synchronous = losses_of(options_of(ScheduleKind::kAmdpSync, seed, experiment), experiment.corpus);
    pair.amdp = losses_of(options_of(ScheduleKind::kAmdp, seed, experiment), experiment.corpus);
    const double synchronous = final_loss(pair.synchronous);
    const double amdp = final_loss(pair.amdp);
    worst = std::max(worst, amdp / synchronous);
    std::printf("| %d | %.4f | %.4f | %.4f |\n", static_cast<int>(seed), synchronous, amdp, amdp / synchronous);
    std::fflush(stdout);
  }
  std::ofstream file(picture);
  file << draw_losses(pairs, "GPT, 4 layers of 64; D = " + std::to_string(kDepth) +
                                 ", T = " + std::to_string(kRoundsPerUpdate) + "; learning rate " +
                                 shortest_text(experiment.rate) + "; final losses are means of the last " +
                                 std::to_string(kFinalUpdates) + " updates");
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
