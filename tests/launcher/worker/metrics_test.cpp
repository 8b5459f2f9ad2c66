#include "launcher/worker/metrics.h"

#include <limits>
#include <thread>

#include <gtest/gtest.h>

#include "base/version.h"
#include "launcher/http/http_client.h"

namespace everstep::launcher {
namespace {

const MetricsLabels kLabels{"first", "host-1"};

WorkerMetrics some_metrics() {
  WorkerMetrics metrics;
  metrics.step = 12;
  metrics.steps = 500;
  metrics.loss = 3.25;
  metrics.validation_loss = 3.5;
  metrics.learning_rate = 6e-4;
  metrics.gradient_norm = 0.75;
  metrics.updates_skipped = 2;
  metrics.seconds_left = 90.5;
  metrics.tokens = 98'304;
  metrics.busy = 0.875;
  metrics.generation = 3;
  metrics.workers = 4;
  metrics.seconds(Phase::kDetect) = 0.0015;
  metrics.seconds(Phase::kFirstStep) = 0.25;
  metrics.minibatches_redone = 16;
  metrics.goodput = 0.96;
  metrics.saves_done = 5;
  metrics.saves_skipped = 1;
  metrics.saves_failed = 2;
  metrics.fenced_calls = 7;
  metrics.stall_seconds = 1.5;
  metrics.calls(StoreCall::kMembership) = 9;
  metrics.calls(StoreCall::kLease) = 4;
  return metrics;
}

TEST(Metrics, AreWrittenAsPrometheusReadsThem) {
  EXPECT_EQ(to_prometheus(some_metrics(), kLabels),
            R"(# HELP everstep_up 1 while the worker runs, with its version.
# TYPE everstep_up gauge
everstep_up{everstep_job="first",worker="host-1",version=")" +
                std::string(kVersion) + R"("} 1
# HELP everstep_step Updates made.
# TYPE everstep_step gauge
everstep_step{everstep_job="first",worker="host-1"} 12
# HELP everstep_steps Updates to make in all.
# TYPE everstep_steps gauge
everstep_steps{everstep_job="first",worker="host-1"} 500
# HELP everstep_seconds_left Until the last update, at the speed of the last few; 0 while it is not known.
# TYPE everstep_seconds_left gauge
everstep_seconds_left{everstep_job="first",worker="host-1"} 90.5
# HELP everstep_loss Loss of the last update.
# TYPE everstep_loss gauge
everstep_loss{everstep_job="first",worker="host-1"} 3.25
# HELP everstep_validation_loss Loss on the validation split, measured last.
# TYPE everstep_validation_loss gauge
everstep_validation_loss{everstep_job="first",worker="host-1"} 3.5
# HELP everstep_learning_rate Learning rate of the last update.
# TYPE everstep_learning_rate gauge
everstep_learning_rate{everstep_job="first",worker="host-1"} 6e-04
# HELP everstep_gradient_norm Norm of the last update's gradient, before clipping.
# TYPE everstep_gradient_norm gauge
everstep_gradient_norm{everstep_job="first",worker="host-1"} 0.75
# HELP everstep_updates_skipped_total Updates of the job that were skipped: not finite, or exploded.
# TYPE everstep_updates_skipped_total counter
everstep_updates_skipped_total{everstep_job="first",worker="host-1"} 2
# HELP everstep_tokens_total Tokens trained on by all workers.
# TYPE everstep_tokens_total counter
everstep_tokens_total{everstep_job="first",worker="host-1"} 98304
# HELP everstep_busy_ratio Share of time that devices computed during the last update.
# TYPE everstep_busy_ratio gauge
everstep_busy_ratio{everstep_job="first",worker="host-1"} 0.875
# HELP everstep_generation Generation of the membership.
# TYPE everstep_generation gauge
everstep_generation{everstep_job="first",worker="host-1"} 3
# HELP everstep_workers Workers of the generation.
# TYPE everstep_workers gauge
everstep_workers{everstep_job="first",worker="host-1"} 4
# HELP everstep_phase_seconds Time of the phases of the last change of membership.
# TYPE everstep_phase_seconds gauge
everstep_phase_seconds{everstep_job="first",worker="host-1",phase="detect"} 0.0015
everstep_phase_seconds{everstep_job="first",worker="host-1",phase="agree"} 0
everstep_phase_seconds{everstep_job="first",worker="host-1",phase="connect"} 0
everstep_phase_seconds{everstep_job="first",worker="host-1",phase="move"} 0
everstep_phase_seconds{everstep_job="first",worker="host-1",phase="first_step"} 0.25
# HELP everstep_minibatches_redone_total Minibatches that were computed again.
# TYPE everstep_minibatches_redone_total counter
everstep_minibatches_redone_total{everstep_job="first",worker="host-1"} 16
# HELP everstep_goodput_ratio Committed samples over what the same workers would have done undisturbed.
# TYPE everstep_goodput_ratio gauge
everstep_goodput_ratio{everstep_job="first",worker="host-1"} 0.96
# HELP everstep_saves_total Checkpoints by what became of them.
# TYPE everstep_saves_total counter
everstep_saves_total{everstep_job="first",worker="host-1",result="done"} 5
everstep_saves_total{everstep_job="first",worker="host-1",result="skipped"} 1
everstep_saves_total{everstep_job="first",worker="host-1",result="failed"} 2
# HELP everstep_fenced_calls_total Calls of peers whose generation or try was over, turned away.
# TYPE everstep_fenced_calls_total counter
everstep_fenced_calls_total{everstep_job="first",worker="host-1"} 7
# HELP everstep_stall_seconds_total Time without training because of changes of membership.
# TYPE everstep_stall_seconds_total counter
everstep_stall_seconds_total{everstep_job="first",worker="host-1"} 1.5
# HELP everstep_etcd_calls_total Calls to etcd by what they are for.
# TYPE everstep_etcd_calls_total counter
everstep_etcd_calls_total{everstep_job="first",worker="host-1",kind="membership"} 9
everstep_etcd_calls_total{everstep_job="first",worker="host-1",kind="list"} 0
everstep_etcd_calls_total{everstep_job="first",worker="host-1",kind="checkpoint"} 0
everstep_etcd_calls_total{everstep_job="first",worker="host-1",kind="progress"} 0
everstep_etcd_calls_total{everstep_job="first",worker="host-1",kind="lease"} 4
)");
}

TEST(Metrics, KeepLabelsInTheirQuotes) {
  const std::string text = to_prometheus({}, {"a\"} 1\neverstep_step 99", "back\\slash"});
  EXPECT_NE(text.find(R"(everstep_step{everstep_job="a\"} 1\neverstep_step 99",worker="back\\slash"} 0)"),
            std::string::npos)
      << text;
}

TEST(Metrics, SpellNumbersThatAreNone) {
  WorkerMetrics metrics;
  metrics.loss = std::numeric_limits<double>::quiet_NaN();
  metrics.busy = -std::numeric_limits<double>::infinity();
  metrics.goodput = std::numeric_limits<double>::infinity();
  const std::string text = to_prometheus(metrics, kLabels);
  EXPECT_NE(text.find("everstep_loss{everstep_job=\"first\",worker=\"host-1\"} NaN\n"), std::string::npos);
  EXPECT_NE(text.find("everstep_busy_ratio{everstep_job=\"first\",worker=\"host-1\"} -Inf\n"), std::string::npos);
  EXPECT_NE(text.find("everstep_goodput_ratio{everstep_job=\"first\",worker=\"host-1\"} +Inf\n"), std::string::npos);
}

TEST(Metrics, AreServedAsTheyChange) {
  MetricsBoard board;
  const auto server = serve_metrics("0", board, kLabels);
  ASSERT_TRUE(server) << server.error();
  const HttpRequest request{.base = "http://127.0.0.1:" + std::to_string((*server)->port()), .path = "/metrics"};
  for (const std::int64_t step : {1, 2}) {
    board.change([&](WorkerMetrics& metrics) { metrics.step = step; });
    const auto reply = fetch_http(request);
    ASSERT_TRUE(reply) << reply.error();
    EXPECT_EQ(reply->status, 200);
    EXPECT_EQ(reply->body, to_prometheus(board.get(), kLabels));
  }
}

TEST(Metrics, RefuseAnAddressThatIsNone) {
  const MetricsBoard board;
  for (const char* address : {"", "metrics", "127.0.0.1", "70000", "-1", "127.0.0.1:", "host:port", "[::1"}) {
    const auto server = serve_metrics(address, board, kLabels);
    ASSERT_FALSE(server) << address;
    EXPECT_EQ(server.error().code, ErrorCode::kInvalidArgument) << address;
  }
}

}  // namespace
}  // namespace everstep::launcher
