#include <cerrno>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "elastic/sealed_store.h"
#include "launcher/cli/signal_watch.h"
#include "launcher/cli/worker_program.h"
#include "launcher/commands/commands.h"
#include "launcher/job/store_connection.h"
#include "launcher/supervise/local_devices.h"
#include "launcher/worker/reach.h"
#include "launcher/worker/worker_order.h"

namespace everstep::launcher {
namespace {

// The worker finds out all this by itself. Asked here, the answer is one line, and nothing has been loaded.
Outcome check_job(const Config& config, const WorkerOrder& order) {
  auto store = connect_store(order.etcd);
  if (!store) return config.blame("etcd", store.error());
  const auto job = read_job(**store, order);
  if (!job) return config.blame("job", job.error());
  elastic::SealedStore opened(std::move(store).value(), job->found.seal);
  const Status reached = check_reach(reach_of(order), opened, elastic::Keys(order.job), job->membership.lease_ttl);
  return reached ? Outcome() : config.blame("job", reached.error());
}

std::string log_path(const WorkerOrder& order) {
  const std::string name = order.name.empty() ? std::to_string(::getpid()) : order.name;
  return order.output + "/worker-" + name + ".log";
}

// From now on standard error is that file.
Outcome open_log(const Config& config, const WorkerOrder& order) {
  if (order.output.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(order.output, error);
  const std::string path = log_path(order);
  const int file = error ? -1 : ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0 || ::dup2(file, STDERR_FILENO) < 0) {
    const std::string why = error ? error.message() : std::generic_category().message(errno);
    return config.reject("output", "cannot write " + path + ": " + why);
  }
  ::close(file);
  return {};
}

Outcome run(const Config& config, Streams& streams) {
  Outcome failure;
  const WorkerOrder order = read_worker_order(config, failure);
  if (!failure) failure = check_job(config, order);
  if (!failure) failure = open_log(config, order);
  if (failure) return failure;
  std::vector<std::string> args = worker_order_arguments(config);
  args.insert(args.begin(), "elastic");
  // From here on it leaves in order: its libraries take a while to load.
  const sigset_t held = leave_signals();
  ::sigprocmask(SIG_BLOCK, &held, nullptr);
  return become_worker_program(std::move(args), streams);
}

Outcome check(const Config& config) {
  Outcome failure;
  read_worker_order(config, failure);
  return failure;
}

}  // namespace

Command worker_command() {
  CommandSpec spec;
  spec.name = "worker";
  spec.summary = "Add one worker to a job, on any host";
  spec.text =
      "Takes part in a job that everstep train has started: reads its settings from etcd, loads code and data and "
      "connects while the others train, and gets its share at a window's end. The host needs the job's data and the "
      "directory of its checkpoints, under any path. Runs until the job is finished (exit code 0).\n"
      "Ctrl-C, SIGTERM, everstep drain or a notice of the cloud (--notice) ask it to leave: it is drained, hands its "
      "state over and exits with 75; a second signal ends it at once. Its log goes to standard error, or to a file in "
      "--output.\n"
      "Workers on several hosts need a job with a secret (--secret-file), --bind=ADDRESS that the others reach, and "
      "--advertise if they reach it under another address. Each listens on one port, of --port-range.\n"
      "On the host of the everstep train that started the job, the file job.conf in its --output names etcd and job.";
  spec.examples = {"everstep worker --etcd=http://127.0.0.1:2379 --job=first",
                   "everstep worker --config=runs/first/job.conf",
                   "everstep worker --etcd=https://etcd-1:2379 --etcd-ca=ca.pem --job=first --secret-file=job.secret "
                   "--bind=10.0.0.7 --port-range=4700-4799 --data=/mnt/corpus.bin --checkpoint-dir=/mnt/checkpoints "
                   "--notice=aws"};
  spec.options = worker_order_options();
  return {spec, run, {}, check, explain_device};
}

}  // namespace everstep::launcher
