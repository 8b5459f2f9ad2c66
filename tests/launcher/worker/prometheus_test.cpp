#include <csignal>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/cli/files.h"
#include "launcher/http/http_client.h"
#include "launcher/supervise/etcd_process.h"
#include "launcher/worker/metrics.h"
#include "storage/json/json.h"
#include "tests/elastic/etcd_cluster.h"
#include "tests/send_signal.h"
#include "tests/temporary_directory.h"

namespace everstep::launcher {
namespace {

using elastic::becomes_true;
using namespace std::chrono_literals;

// A real Prometheus that scrapes one port every second, with its data in a directory of the test.
class Prometheus {
 public:
  explicit Prometheus(int scraped) : port_(unused_port()) {
    const std::string config =
        "global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: everstep\n  "
        "static_configs: [{targets: ['127.0.0.1:" +
        std::to_string(scraped) + "']}]\n";
    EXPECT_TRUE(write_file(directory_.file("prometheus.yml"), config).ok());
    const std::string config_file = "--config.file=" + directory_.file("prometheus.yml");
    const std::string data = "--storage.tsdb.path=" + directory_.file("data");
    const std::string address = "--web.listen-address=127.0.0.1:" + std::to_string(port_);
    const std::string log = directory_.file("log");
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (std::freopen(log.c_str(), "w", stderr) == nullptr) ::_exit(1);
    ::execlp("prometheus", "prometheus", config_file.c_str(), data.c_str(), address.c_str(), nullptr);
    ::_exit(127);
  }
  Prometheus(const Prometheus&) = delete;
  Prometheus& operator=(const Prometheus&) = delete;
  ~Prometheus() {
    send_signal(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  // The series that an expression finds now: [{"metric": …, "value": [time, "text"]}].
  storage::Json::Array query(const std::string& expression) const {
    const auto reply =
        fetch_http({.base = "http://127.0.0.1:" + std::to_string(port_), .path = "/api/v1/query?query=" + expression});
    if (!reply || reply->status != 200) return {};
    const auto json = storage::parse_json(reply->body);
    if (!json || json->find("data") == nullptr) return {};
    return std::get<storage::Json::Array>(json->find("data")->find("result")->value());
  }

  // The value of the one series that it finds; empty as long as there is none.
  std::string value(const std::string& expression) const {
    const storage::Json::Array found = query(expression);
    if (found.size() != 1) return "";
    return std::get<std::string>(std::get<storage::Json::Array>(found[0].find("value")->value()).at(1).value());
  }

 private:
  TemporaryDirectory directory_;
  int port_;
  pid_t pid_ = -1;
};

TEST(Prometheus, ReadsEveryMetricOfAWorker) {
  MetricsBoard board;
  WorkerMetrics metrics;
  metrics.step = 12;
  metrics.loss = 3.25;
  metrics.tokens = 98'304;
  metrics.busy = 0.875;
  metrics.generation = 3;
  metrics.workers = 4;
  metrics.seconds(Phase::kMove) = 0.25;
  metrics.minibatches_redone = 16;
  metrics.goodput = 0.5;
  metrics.saves_done = 5;
  metrics.saves_skipped = 1;
  metrics.saves_failed = 2;
  metrics.fenced_calls = 7;
  metrics.stall_seconds = 1.5;
  board.set(metrics);
  const auto server = serve_metrics("0", board, {"first", "w1"});
  ASSERT_TRUE(server) << server.error();
  const Prometheus prometheus((*server)->port());
  ASSERT_TRUE(becomes_true([&] { return prometheus.value("up") == "1"; }, 60s));

  const std::vector<std::pair<std::string, std::string>> expected{
      {"everstep_step", "12"},
      {"everstep_loss", "3.25"},
      {"everstep_tokens_total", "98304"},
      {"everstep_busy_ratio", "0.875"},
      {"everstep_generation", "3"},
      {"everstep_workers", "4"},
      {"everstep_phase_seconds%7Bphase=%22move%22%7D", "0.25"},
      {"count(everstep_phase_seconds)", "5"},
      {"everstep_minibatches_redone_total", "16"},
      {"everstep_goodput_ratio", "0.5"},
      {"everstep_saves_total%7Bresult=%22done%22%7D", "5"},
      {"everstep_saves_total%7Bresult=%22skipped%22%7D", "1"},
      {"everstep_saves_total%7Bresult=%22failed%22%7D", "2"},
      {"everstep_fenced_calls_total", "7"},
      {"everstep_stall_seconds_total", "1.5"},
  };
  for (const auto& [expression, value] : expected) EXPECT_EQ(prometheus.value(expression), value) << expression;

  const storage::Json::Array found = prometheus.query("everstep_step");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(*found[0].find("metric")->find("everstep_job"), storage::Json("first"));
  EXPECT_EQ(*found[0].find("metric")->find("worker"), storage::Json("w1"));
  EXPECT_EQ(*found[0].find("metric")->find("job"), storage::Json("everstep")) << "that is Prometheus' own";

  board.change([](WorkerMetrics& now) { now.step = 13; });
  EXPECT_TRUE(becomes_true([&] { return prometheus.value("everstep_step") == "13"; }, 30s));
}

}  // namespace
}  // namespace everstep::launcher
