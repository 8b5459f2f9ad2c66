#include <cmath>
#include <memory>
#include <optional>

#include <poll.h>

#include "launcher/commands/commands.h"
#include "launcher/elastic/job_address.h"
#include "launcher/elastic/job_list.h"
#include "launcher/elastic/job_status.h"
#include "launcher/train/signal_watch.h"

namespace everstep::launcher {
namespace {

struct StatusRequest {
  JobAddress address;
  JobSecret secret;
  bool json = false;
  std::optional<int> watch_ms;
};

Outcome read_request(const Config& config, StatusRequest& request) {
  Values values(config);
  request.json = values.flag("json");
  const std::string secret_file = config.is_set("secret-file") ? values.path("secret-file") : "";
  if (config.is_set("watch")) {
    request.watch_ms = static_cast<int>(std::lround(1000 * values.number("watch", {.min = 0.1, .max = 1e5})));
  }
  Outcome failure = values.failure();
  if (failure) return failure;
  auto secret = JobSecret::read(secret_file);
  if (!secret) return config.blame("secret-file", secret.error());
  request.secret = std::move(secret).value();
  request.address = read_job_address(config, failure);
  return failure;
}

// What to print now.
Result<std::string> report(elastic::KvStore& store, const StatusRequest& request) {
  const std::size_t indent = request.watch_ms ? 0 : 2;
  if (request.address.job.empty()) {
    const auto jobs = list_jobs(store, request.secret);
    if (!jobs) return jobs.error();
    return request.json ? to_text(job_list_json(*jobs), indent) + "\n" : job_list_text(*jobs);
  }
  const auto view = look_at_job(store, elastic::Keys(request.address.job), request.address.job);
  if (!view) return view.error();
  const JobStatus status = read_job_status(*view, request.address.job, request.secret);
  return request.json ? to_text(status_json(status), indent) + "\n" : status_text(status);
}

// Until a signal comes. Etcd may be away meanwhile, and a job may go.
void watch(elastic::KvStore& store, const StatusRequest& request, const SignalWatch& signals, Streams& streams) {
  const bool redraws = streams.out_is_terminal && !request.json;
  while (true) {
    pollfd news{signals.fd(), POLLIN, 0};
    if (::poll(&news, 1, *request.watch_ms) > 0) return;
    const auto text = report(store, request);
    if (redraws) streams.out << "\x1b[H\x1b[2J";
    if (!redraws && !request.json) streams.out << "\n";
    if (text) {
      streams.out << *text;
    } else {
      print_error(streams.log, text.error());
    }
    streams.out.flush();
    if (!streams.out) return;  // nobody reads any more
  }
}

Outcome run(const Config& config, Streams& streams) {
  StatusRequest request;
  if (auto failure = read_request(config, request)) return failure;
  std::optional<SignalWatch> signals;  // before the threads of the store
  if (request.watch_ms) signals.emplace();
  std::unique_ptr<elastic::KvStore> store;
  if (auto failure = connect_to(request.address, config, store)) return failure;
  const auto text = report(*store, request);
  if (!text) {
    return text.error().code == ErrorCode::kNotFound ? blame_job(request.address, config, text.error())
                                                     : Failure(text.error());
  }
  streams.out << *text << std::flush;
  if (signals) watch(*store, request, *signals, streams);
  return {};
}

}  // namespace

Command status_command() {
  CommandSpec spec;
  spec.name = "status";
  spec.summary = "Show how a job and its workers are doing";
  spec.text =
      "Without --job: a row per job of the etcd. With it: what the job does and what it waits for, step, loss and "
      "speed, the generation and its plan, the newest checkpoint (HEAD), changes under way, hosts that are shut out, "
      "and a row per worker. Only looks: nothing changes.";
  spec.examples = {"everstep status --dir=runs/first", "everstep status --etcd=http://127.0.0.1:2379",
                   "everstep status --etcd=http://127.0.0.1:2379 --job=first --watch=5"};
  spec.options = job_address_options({
      {.name = "secret-file",
       .value_name = "FILE",
       .help = "The job's secret: workers that do not know it are not shown"},
      {.name = "watch", .value_name = "S", .help = "Again every S seconds, until Ctrl-C", .implicit_text = "2"},
      {.name = "json", .help = "Print JSON; with --watch, one line each time"},
  });
  return {spec, run};
}

}  // namespace everstep::launcher
