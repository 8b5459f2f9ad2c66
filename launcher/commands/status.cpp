#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include <poll.h>

#include "base/log_line.h"
#include "launcher/cli/signal_watch.h"
#include "launcher/commands/commands.h"
#include "launcher/status/ended_run.h"
#include "launcher/status/job_address.h"
#include "launcher/status/job_list.h"
#include "launcher/status/job_status.h"
#include "launcher/status/job_tool.h"

namespace everstep::launcher {
namespace {

struct StatusRequest {
  std::string directory;  // of --dir; empty: the options name the job
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
  request.directory = config.setting("dir").text.value_or("");
  return check_job_address(config);
}

// What there is to print now.
struct Look {
  std::string text{};
  bool is_over = false;  // nothing will change any more
  // Instead of a text. Without a job or a run one may come: it was looked for too early.
  Outcome failure{};
  bool is_too_early = false;
  bool may_come_back = false;  // the run goes on, and starts its etcd again
};

// Looks at a job again and again: in its etcd, and in the files of its run once that has ended.
class StatusReader {
 public:
  StatusReader(const Config& config, const StatusRequest& request, std::size_t columns)
      : config_(config), request_(request), columns_(columns) {}

  Look look() {
    if (request_.directory.empty()) return look_at_etcd();
    switch (phase_of(request_.directory)) {
      case RunPhase::kEnded:
        return look_at_files();
      case RunPhase::kRunning:
        break;
      case RunPhase::kNone:
      case RunPhase::kStarting:
      case RunPhase::kFixed:
        return too_early();
    }
    bool is_left = !RunLock::is_locked(request_.directory);
    Look seen = look_at_etcd();
    if (seen.failure && !is_left) {
      is_left = !RunLock::is_locked(request_.directory);  // it may have been killed meanwhile
      seen.may_come_back = !is_left;
    }
    // Its own etcd has gone with it; in another one nobody works for the job any more.
    const bool tells_nothing = seen.failure || seen.is_over;
    const Look files = is_left && tells_nothing ? look_at_files() : seen;
    if (!files.failure) seen = files;
    if (!is_left) seen.is_over = false;  // the run's last words are still to come
    return seen;
  }

 private:
  Look look_at_etcd() {
    Look seen;
    if (!store_) seen.failure = connect();
    if (seen.failure) return seen;
    if (address_.job.empty()) {
      const auto jobs = list_jobs(*store_, request_.secret);
      if (!jobs) return failed(jobs.error());
      seen.text = request_.json ? line(job_list_json(*jobs)) : job_list_text(*jobs, columns_);
      return seen;
    }
    const auto view = look_at_job(*store_, elastic::Keys(address_.job), address_.job);
    if (!view) return failed(view.error());
    JobStatus status = read_job_status(*view, address_.job, request_.secret);
    const bool is_idle = status.state == "stopped" || status.state == "no workers";
    // Whoever asks by the run's directory is told by its files.
    if (is_idle && request_.directory.empty()) status.resume = resume_command(status, address_.etcd, config_);
    seen.is_over = status.is_over();
    seen.text = request_.json ? line(status_json(status)) : status_text(status, columns_);
    return seen;
  }

  Look look_at_files() const {
    const auto run = read_ended_run(request_.directory, request_.secret.manifest_secret());
    Look seen;
    if (!run) {
      seen.failure = config_.blame("dir", run.error());
      return seen;
    }
    seen.text = request_.json ? line(ended_run_json(*run)) : ended_run_text(*run);
    seen.is_over = true;
    return seen;
  }

  Look too_early() {
    Look seen;
    seen.is_too_early = true;
    read_job_address(config_, seen.failure);
    return seen.failure ? seen : look_at_etcd();  // it has come meanwhile
  }

  Look failed(const Error& error) const {
    Look seen;
    seen.is_too_early = error.code == ErrorCode::kNotFound;
    seen.failure = seen.is_too_early ? blame_job(address_, config_, error) : Failure(error);
    return seen;
  }

  Outcome connect() {
    Outcome failure;
    address_ = read_job_address(config_, failure);
    return failure ? failure : connect_to(address_, config_, store_);
  }

  std::string line(const storage::Json& json) const { return to_text(json, request_.watch_ms ? 0 : 2) + "\n"; }

  const Config& config_;
  const StatusRequest& request_;
  const std::size_t columns_;
  JobAddress address_;
  std::unique_ptr<elastic::KvStore> store_;
};

// Until the job is over or a signal comes. The job may not be there yet, and etcd may be away meanwhile.
class Watch {
 public:
  Watch(StatusReader& reader, const StatusRequest& request, const SignalWatch& signals, Streams& streams)
      : reader_(reader), request_(request), signals_(signals), streams_(streams) {}

  Outcome run() {
    while (streams_.out) {
      const Look seen = reader_.look();
      if (seen.failure && !may_change(seen)) return seen.failure;
      if (seen.failure) {
        tell(seen);
      } else {
        show(seen.text);
      }
      if (seen.is_over) return {};
      pollfd news{signals_.fd(), POLLIN, 0};
      if (::poll(&news, 1, *request_.watch_ms) > 0) return {};
    }
    return {};  // nobody reads any more
  }

 private:
  // A job that was there and is not any more does not come back, and an etcd is not reached by asking again if it was
  // never reached, unless somebody looks after it.
  bool may_change(const Look& seen) const {
    return seen.may_come_back || (seen.is_too_early ? !has_shown_ : has_shown_);
  }

  void show(const std::string& text) {
    const bool redraws = streams_.out_is_terminal && !request_.json;
    if (redraws) streams_.out << "\x1b[H\x1b[2J";
    if (!redraws && !request_.json && has_shown_) streams_.out << "\n";
    streams_.out << text << std::flush;
    has_shown_ = true;
    seen_.clear();
    told_.clear();
  }

  // Once, as long as it stays the same. An etcd that does not answer has a second try: it may just be going with its
  // job.
  void tell(const Look& seen) {
    const std::string why = seen.failure->error.line();
    const bool is_news = std::exchange(seen_, why) == why || seen.is_too_early;
    if (!is_news || std::exchange(told_, why) == why) return;
    print_event(streams_, LogLine("watch_waits").add("reason", why).add("until", "Ctrl-C").text());
  }

  StatusReader& reader_;
  const StatusRequest& request_;
  const SignalWatch& signals_;
  Streams& streams_;
  bool has_shown_ = false;
  std::string seen_;  // the last failure
  std::string told_;
};

Outcome run(const Config& config, Streams& streams) {
  StatusRequest request;
  if (auto failure = read_request(config, request)) return failure;
  StatusReader reader(config, request, streams.out_columns);
  if (request.watch_ms) {
    const SignalWatch signals;  // before the threads of the store
    return Watch(reader, request, signals, streams).run();
  }
  const Look seen = reader.look();
  if (!seen.failure) streams.out << seen.text << std::flush;
  return seen.failure;
}

Outcome check(const Config& config) {
  StatusRequest request;
  return read_request(config, request);
}

}  // namespace

Command status_command() {
  CommandSpec spec;
  spec.name = "status";
  spec.summary = "Show how a job and its workers are doing, or how a run ended";
  spec.text =
      "Without --job: a row per job of the etcd. With it, or with --dir: what the job does and what it waits for, "
      "step, "
      "loss and speed, the generation and its plan, the newest checkpoint (HEAD), changes under way, hosts that are "
      "shut out, and a row per worker. Only looks: nothing changes.\n"
      "With --dir of a run that has ended: how and when it ended, the step, loss and HEAD of its newest checkpoint, "
      "and "
      "the command that goes on from there, all from its files.\n"
      "--watch waits for a job that is not there yet, and ends by itself, with the last state, when the job is "
      "finished, stopped or gone.\n"
      "Exit codes: 0 it was shown, 64 there is no such job or run, 69 etcd does not answer.";
  spec.examples = {"everstep status --dir=runs/first", "everstep status --dir=runs/first --watch",
                   "everstep status --etcd=http://127.0.0.1:2379",
                   "everstep status --etcd=http://127.0.0.1:2379 --job=first --watch=5"};
  spec.options = job_address_options({
      {.name = "secret-file",
       .value_name = "FILE",
       .help = "The job's secret: workers that do not know it are not shown"},
      {.name = "watch",
       .value_name = "S",
       .help = "Again every S seconds, until the job has ended or Ctrl-C",
       .implicit_text = "2"},
      {.name = "json", .help = "Print JSON; with --watch, one line each time"},
  });
  return {spec, run, {}, check};
}

}  // namespace everstep::launcher
