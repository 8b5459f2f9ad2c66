#include "launcher/worker/metrics.h"

#include <cmath>
#include <utility>

#include "base/text.h"
#include "base/version.h"

namespace everstep::launcher {
namespace {

std::string value_text(std::int64_t value) { return std::to_string(value); }

std::string value_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return shortest_text(value);
}

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '\\' || c == '"') safe += '\\';
    safe += c == '\n' ? "\\n" : std::string(1, c);
  }
  return safe;
}

// Writes metrics one after the other, all with the labels that tell workers apart. A plain "job" is Prometheus' own
// label and would come out as "exported_job".
class Exposition {
 public:
  explicit Exposition(const MetricsLabels& labels)
      : labels_("everstep_job=\"" + escaped(labels.job) + "\",worker=\"" + escaped(labels.worker) + "\"") {}

  void begin(std::string_view name, std::string_view type, std::string_view help) {
    name_ = "everstep_" + std::string(name);
    text_ += "# HELP " + name_ + " " + std::string(help) + "\n# TYPE " + name_ + " " + std::string(type) + "\n";
  }

  template <typename Number>
  void sample(Number value, std::string_view label = {}, std::string_view label_value = {}) {
    text_ += name_ + "{" + labels_;
    if (!label.empty()) text_ += "," + std::string(label) + "=\"" + escaped(label_value) + "\"";
    text_ += "} " + value_text(value) + "\n";
  }

  template <typename Number>
  void gauge(std::string_view name, std::string_view help, Number value) {
    begin(name, "gauge", help);
    sample(value);
  }

  template <typename Number>
  void counter(std::string_view name, std::string_view help, Number value) {
    begin(name, "counter", help);
    sample(value);
  }

  std::string take() { return std::move(text_); }

 private:
  std::string labels_;
  std::string name_;
  std::string text_;
};

}  // namespace

std::string_view to_string(Phase phase) {
  constexpr std::array<std::string_view, kPhases> kNames = {"detect", "agree", "connect", "move", "first_step"};
  return kNames.at(static_cast<std::size_t>(phase));
}

std::string to_prometheus(const WorkerMetrics& metrics, const MetricsLabels& labels) {
  Exposition text(labels);
  text.begin("up", "gauge", "1 while the worker runs, with its version.");
  text.sample(std::int64_t{1}, "version", kVersion);
  text.gauge("step", "Updates made.", metrics.step);
  text.gauge("steps", "Updates to make in all.", metrics.steps);
  text.gauge("seconds_left", "Until the last update, at the speed of the last few; 0 while it is not known.",
             metrics.seconds_left);
  text.gauge("loss", "Loss of the last update.", metrics.loss);
  if (metrics.validation_loss) {
    text.gauge("validation_loss", "Loss on the validation split, measured last.", *metrics.validation_loss);
  }
  text.gauge("learning_rate", "Learning rate of the last update.", metrics.learning_rate);
  text.gauge("gradient_norm", "Norm of the last update's gradient, before clipping.", metrics.gradient_norm);
  text.counter("updates_skipped_total", "Updates of the job that were skipped: not finite, or exploded.",
               metrics.updates_skipped);
  text.counter("tokens_total", "Tokens trained on by all workers.", metrics.tokens);
  text.gauge("busy_ratio", "Share of time that devices computed during the last update.", metrics.busy);
  text.gauge("generation", "Generation of the membership.", metrics.generation);
  text.gauge("workers", "Workers of the generation.", metrics.workers);
  text.begin("phase_seconds", "gauge", "Time of the phases of the last change of membership.");
  for (std::size_t i = 0; i < kPhases; ++i) {
    text.sample(metrics.phase_seconds[i], "phase", to_string(static_cast<Phase>(i)));
  }
  text.counter("minibatches_redone_total", "Minibatches that were computed again.", metrics.minibatches_redone);
  text.gauge("goodput_ratio", "Committed samples over what the same workers would have done undisturbed.",
             metrics.goodput);
  text.begin("saves_total", "counter", "Checkpoints by what became of them.");
  text.sample(metrics.saves_done, "result", "done");
  text.sample(metrics.saves_skipped, "result", "skipped");
  text.sample(metrics.saves_failed, "result", "failed");
  text.counter("fenced_calls_total", "Calls of peers whose generation or try was over, turned away.",
               metrics.fenced_calls);
  text.counter("stall_seconds_total", "Time without training because of changes of membership.", metrics.stall_seconds);
  text.begin("etcd_calls_total", "counter", "Calls to etcd by what they are for.");
  for (std::size_t i = 0; i < kStoreCalls; ++i) {
    text.sample(metrics.etcd_calls[i], "kind", to_string(static_cast<StoreCall>(i)));
  }
  return text.take();
}

Result<std::unique_ptr<HttpServer>> serve_metrics(const std::string& address, const MetricsBoard& board,
                                                  MetricsLabels labels) {
  const auto listen = parse_listen_address(address);
  if (!listen) return listen.error();
  return serve_http(*listen, {"/metrics", [&board, labels = std::move(labels)] {
                                return Page{to_prometheus(board.get(), labels), "text/plain; version=0.0.4"};
                              }});
}

}  // namespace everstep::launcher
