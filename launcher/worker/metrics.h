#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "launcher/http/http_server.h"
#include "launcher/worker/counting_store.h"

namespace everstep::launcher {

// The phases of the last change of membership, in their order.
enum class Phase : std::uint8_t { kDetect, kAgree, kConnect, kMove, kFirstStep };
inline constexpr std::size_t kPhases = 5;
std::string_view to_string(Phase phase);  // "first_step"

// What one worker shows. Totals count since the process started.
struct WorkerMetrics {
  std::int64_t step = 0;
  std::int64_t steps = 0;  // in all
  double loss = 0;
  std::optional<double> validation_loss;  // the last that was measured
  double learning_rate = 0;
  double gradient_norm = 0;
  std::int64_t updates_skipped = 0;  // since the start of training
  double seconds_left = 0;
  std::int64_t tokens = 0;
  double busy = 0;
  std::int64_t generation = 0;
  std::int64_t workers = 0;  // of the generation
  std::array<double, kPhases> phase_seconds{};
  std::int64_t minibatches_redone = 0;
  double goodput = 1;
  std::int64_t saves_done = 0;
  std::int64_t saves_skipped = 0;
  std::int64_t saves_failed = 0;
  std::int64_t fenced_calls = 0;
  double stall_seconds = 0;
  std::array<std::int64_t, kStoreCalls> etcd_calls{};

  double& seconds(Phase phase) { return phase_seconds.at(static_cast<std::size_t>(phase)); }
  std::int64_t& calls(StoreCall call) { return etcd_calls.at(static_cast<std::size_t>(call)); }
  bool operator==(const WorkerMetrics&) const = default;
};

// Who shows them.
struct MetricsLabels {
  std::string job;
  std::string worker;  // its name
};

// Prometheus' text format, version 0.0.4.
std::string to_prometheus(const WorkerMetrics& metrics, const MetricsLabels& labels);

// The newest values, from and for any thread.
class MetricsBoard {
 public:
  void set(const WorkerMetrics& metrics) {
    const std::scoped_lock lock(mutex_);
    metrics_ = metrics;
  }
  WorkerMetrics get() const {
    const std::scoped_lock lock(mutex_);
    return metrics_;
  }
  // board.change([](WorkerMetrics& metrics) { ++metrics.saves_done; });
  template <typename Function>
  void change(Function function) {
    const std::scoped_lock lock(mutex_);
    function(metrics_);
  }

 private:
  mutable std::mutex mutex_;
  WorkerMetrics metrics_;
};

// Serves the board at /metrics until the server goes. `address` is the value of --metrics; the board must outlive it.
Result<std::unique_ptr<HttpServer>> serve_metrics(const std::string& address, const MetricsBoard& board,
                                                  MetricsLabels labels);

}  // namespace everstep::launcher
