#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "tests/trainer/loop/all_workers.h"
#include "trainer/threads/thread_transport.h"
#include "trainer/torch/torch_stage.h"

namespace everstep::trainer {

Result<std::vector<WorkerRun>> all_or_first_error(std::vector<Result<WorkerRun>> runs) {
  const auto failed = [](const auto& run) { return !run.ok(); };
  const auto failed_by_itself = [](const auto& run) {
    return !run.ok() && run.error().code != ErrorCode::kUnavailable && run.error().code != ErrorCode::kCancelled;
  };
  auto first = std::find_if(runs.begin(), runs.end(), failed_by_itself);
  if (first == runs.end()) first = std::find_if(runs.begin(), runs.end(), failed);
  if (first != runs.end()) {
    Error error = first->error();
    error.message = "worker " + std::to_string(first - runs.begin()) + ": " + error.message;
    return error;
  }
  std::vector<WorkerRun> outcome;
  for (Result<WorkerRun>& run : runs) outcome.push_back(std::move(run).value());
  return outcome;
}

Result<std::vector<WorkerRun>> run_in_threads(const TrainOptions& options, const DataSource& data,
                                              const RunChanges& changes) {
  prepare_torch(1);  // settings of the process are made before there are threads
  const int workers = options.schedule.depth * options.schedule.width;
  auto transports = changes.make_transports ? changes.make_transports(workers)
                                            : make_thread_transports(workers, {std::chrono::microseconds(50), 11});
  std::vector<Result<WorkerRun>> runs(workers, Error{});
  std::vector<std::thread> threads;
  for (int worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      runs[worker] = run_worker(options, data, *transports[worker], changes);
      transports[worker].reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return all_or_first_error(std::move(runs));
}

}  // namespace everstep::trainer
