#include "launcher/rehearse/chaos/chaos_job.h"

#include <algorithm>
#include <csignal>
#include <sstream>
#include <utility>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "elastic/etcd_client.h"
#include "elastic/keys.h"
#include "elastic/sealed_store.h"
#include "launcher/cli/files.h"
#include "launcher/cli/host.h"
#include "launcher/cli/process_table.h"
#include "launcher/cli/signal_watch.h"
#include "launcher/job/job_setup.h"
#include "launcher/job/lineage.h"
#include "launcher/status/job_address.h"
#include "launcher/status/job_control.h"

namespace everstep::launcher::chaos {
namespace {

constexpr std::chrono::milliseconds kCall{1000};
constexpr std::size_t kMostLog = std::size_t{1} << 28;
constexpr int kMostStarts = 20;

constexpr int kUnreachable = static_cast<int>(ExitCode::kUnreachable);
constexpr int kRestart = static_cast<int>(ExitCode::kRestart);

std::vector<std::string> train_words(const Schedule& schedule, const JobOrder& order) {
  std::vector<std::string> words{sibling_program("everstep"),
                                 "train",
                                 "--output=" + (order.directory / "run").string(),
                                 "--checkpoint-dir=" + order.checkpoints.string(),
                                 "--checkpoint-every=10",
                                 "--keep-last=" + std::to_string(kKeptCheckpoints),
                                 "--data=" + (order.directory / "corpus.txt").string(),
                                 "--workers=" + std::to_string(schedule.workers),
                                 "--steps=1000000",
                                 "--lr=0.003",
                                 "--lr-decay=constant",
                                 "--warmup=0",
                                 "--layers=6",
                                 "--hidden=16",
                                 "--heads=2",
                                 "--sequence=16",
                                 "--minibatch=2",
                                 "--window=8",
                                 "--reproducible",
                                 "--lease-ttl=" + seconds_text(kLease),
                                 "--join-debounce=0.2",
                                 "--join-interval=0.5",
                                 "--etcd=" + order.etcd,
                                 "--secret-file=" + secret_file(order.directory).string(),
                                 "--bind=" + order.bind,
                                 "--device=" + order.device,
                                 "--transport=" + order.transport,
                                 std::string("--job=") + kJobName};
  const bool is_synchronous = schedule.job == JobKind::kSynchronous;
  words.emplace_back(is_synchronous ? "--synchronous" : "--schedule=" + std::string(to_string(schedule.job)));
  if (schedule.job == JobKind::kAmdp || schedule.job == JobKind::kClockwork) words.emplace_back("--provisional=on");
  if (order.tcp_only) words.emplace_back("--wire=tcp");
  if (order.etcd_is_far) words.emplace_back("--etcd-plain-text");
  if (!schedule.deep) return words;
  words.emplace_back(schedule.job == JobKind::kAmdp ? "--shapes=8=8x1,7=4x1,6=4x1,5=4x1,4=4x1,3=2x1,2=2x1"
                                                    : "--shapes=8=8x1,7=7x1,6=6x1,5=5x1,4=4x1,3=3x1,2=2x1,1=1x1");
  return words;
}

std::vector<std::string> lines_with(const std::string& text, const std::string& what) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(what) != std::string::npos) found.push_back(line);
  }
  return found;
}

// The text between `begin` and a blank or the end.
std::string word_after(const std::string& line, const std::string& begin) {
  const std::size_t at = line.find(begin);
  if (at == std::string::npos) return {};
  return line.substr(at + begin.size(), line.find(' ', at + begin.size()) - at - begin.size());
}

// As waitpid would have told what `everstep train` logs about a worker's end.
int wait_status_of(const std::string& signal, const std::string& exit_code) {
  for (int number = 1; number < NSIG; ++number) {
    if (signal_name(number) == signal) return W_EXITCODE(0, number);
  }
  return W_EXITCODE(parse_number<int>(exit_code).value_or(static_cast<int>(ExitCode::kInternal)), 0);
}

// Nobody else may read it.
Result<std::string> make_secret(const std::filesystem::path& path) {
  constexpr int kMode = 0600;
  std::string secret;
  for (int part = 0; part < 4; ++part) secret += hex_text(random_lineage());
  const int file = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, kMode);
  const bool is_written = file >= 0 && ::write(file, secret.data(), secret.size()) == std::ssize(secret);
  if (file >= 0) ::close(file);
  if (!is_written) return Error{ErrorCode::kUnavailable, "cannot write " + path.string(), ""};
  return secret;
}

std::string corpus() {
  constexpr std::size_t kBytes = 8000;
  std::string text;
  while (text.size() < kBytes) text += "the quick brown fox jumps over the lazy dog. ";
  return text;
}

}  // namespace

Result<std::unique_ptr<ChaosJob>> ChaosJob::start(const Schedule& schedule, const JobOrder& order,
                                                  const std::vector<std::string>& etcd_urls) {
  EVERSTEP_TRY(write_file((order.directory / "corpus.txt").string(), corpus()));
  auto secret = make_secret(secret_file(order.directory));
  if (!secret) return secret.error();
  auto store = elastic::connect_etcd({.endpoints = etcd_urls, .allow_plain_text = true});
  if (!store) return store.error();
  auto train = ChildProcess::start(train_words(schedule, order), order.directory / "train.log");
  if (!train) return train.error();
  return std::unique_ptr<ChaosJob>(new ChaosJob(order, std::move(*secret), std::move(*train), std::move(*store)));
}

std::vector<WorkerProcess> ChaosJob::workers() {
  std::vector<WorkerProcess> all;
  for (const pid_t child : train_.is_running() ? living_children(train_.pid()) : std::vector<pid_t>()) {
    for (const std::string& word : arguments_of(child)) {
      if (word.starts_with("--name=")) all.push_back({word.substr(word.find('=') + 1), child, true});
    }
  }
  for (Joined& joined : joined_) {
    if (joined.process.is_running()) all.push_back({joined.name, joined.process.pid(), false});
  }
  return all;
}

std::optional<WorkerProcess> ChaosJob::leader() {
  const auto seen = status();
  const WorkerStatus* leads = seen ? seen->leader() : nullptr;
  if (leads == nullptr) return std::nullopt;
  for (const WorkerProcess& worker : workers()) {
    if (worker.name == leads->record.name) return worker;
  }
  return std::nullopt;
}

bool ChaosJob::has_newcomers() {
  const auto seen = status();
  if (!seen) return true;
  const auto all = workers();
  return std::ranges::any_of(all, [&](const WorkerProcess& worker) {
    return std::ranges::none_of(seen->workers, [&](const WorkerStatus& one) {
      return one.record.name == worker.name && one.record.state != elastic::MemberState::kWarming;
    });
  });
}

void ChaosJob::kill(const WorkerProcess& worker) {
  expect_kill(worker);
  ::kill(worker.pid, SIGKILL);
}

void ChaosJob::crash(const WorkerProcess& worker) {
  crashed_.insert(worker.name);
  ::kill(worker.pid, SIGSEGV);
}

std::optional<elastic::KeyValue> ChaosJob::member_key(const WorkerProcess& worker) {
  const auto members = read(elastic::Keys(kJobName).members());
  for (const elastic::KeyValue& item : members ? members->reads.front() : std::vector<elastic::KeyValue>()) {
    const auto member = elastic::parse_member(item.value);
    if (member && member->name == worker.name) return item;
  }
  return std::nullopt;
}

Status ChaosJob::revoke_lease(const WorkerProcess& worker) {
  const auto member = member_key(worker);
  if (!member) return not_found(worker.name + " is no member");
  return store_->revoke(member->lease, kCall);
}

bool ChaosJob::has_acked(const WorkerProcess& worker) {
  const elastic::Keys keys(kJobName);
  const auto member = member_key(worker);
  const auto acks = member ? read(keys.acks()) : Result<elastic::TxnReply>(not_found(""));
  const std::string id = member ? member->key.substr(keys.members().size()) : "";
  return acks && std::ranges::any_of(acks->reads.front(),
                                     [&](const elastic::KeyValue& item) { return item.key.ends_with("/" + id); });
}

void ChaosJob::terminate(const WorkerProcess& worker) {
  terminated_.insert(worker.name);
  ::kill(worker.pid, SIGTERM);
}

Result<WorkerProcess> ChaosJob::join(const std::vector<std::string>& more) {
  std::vector<std::string> all{"--bind=" + order_.bind};
  all.insert(all.end(), more.begin(), more.end());
  return start_worker({}, all);
}

Result<WorkerProcess> ChaosJob::join_from(const FarHost& host, const EtcdServers& etcd) {
  return start_worker(host.prefix(),
                      {"--etcd=" + etcd.other_endpoints(), "--etcd-plain-text", "--bind=" + host.far_address()});
}

Result<WorkerProcess> ChaosJob::start_worker(std::vector<std::string> prefix, const std::vector<std::string>& more) {
  std::string name = "joined-" + std::to_string(joins_++);
  std::vector<std::string> words = std::move(prefix);
  words.insert(words.end(), {sibling_program("everstep"), "worker",
                             "--config=" + job_address_file((order_.directory / "run").string()),
                             "--secret-file=" + secret_file(order_.directory).string(), "--name=" + name});
  if (order_.tcp_only) words.emplace_back("--wire=tcp");
  words.insert(words.end(), more.begin(), more.end());
  auto process = ChildProcess::start(words, log_path(name));
  if (!process) return process.error();
  WorkerProcess worker{name, process->pid(), false};
  joined_.push_back({std::move(name), std::move(*process), std::move(words)});
  return worker;
}

Status ChaosJob::scale(int by) {
  const auto all = workers();
  const auto local = std::count_if(all.begin(), all.end(), [](const WorkerProcess& one) { return one.is_local; });
  const int wanted = std::max(1, static_cast<int>(local) + by);
  return ask_for_workers(*store_, elastic::Keys(kJobName), wanted);
}

void ChaosJob::revive() {
  for (Joined& joined : joined_) {
    if (joined.process.is_running() || joined.starts >= kMostStarts || killed_.contains(joined.name)) continue;
    const int status = *joined.process.wait_status();
    if (!WIFEXITED(status) || WEXITSTATUS(status) != kUnreachable) continue;
    auto process = ChildProcess::start(joined.words, log_path(joined.name));
    if (process) joined.process = std::move(*process);
    ++joined.starts;
  }
}

std::optional<elastic::HeadRecord> ChaosJob::head() {
  const auto reply = read(elastic::Keys(kJobName).head());
  if (!reply || reply->reads.front().empty()) return std::nullopt;
  auto head = elastic::parse_head_record(reply->reads.front().front().value);
  return head ? std::optional(std::move(*head)) : std::nullopt;
}

Result<std::vector<elastic::KeyValue>> ChaosJob::keys() {
  auto reply = read(elastic::Keys(kJobName).prefix());
  if (!reply) return reply.error();
  return std::move(reply->reads.front());
}

void ChaosJob::ask_to_stop() {
  // A second signal would end it at once.
  if (!std::exchange(was_asked_, true) && train_.is_running()) train_.signal(SIGTERM);
  // The job of an `everstep train` that has gone is told by its keys; its own word and this one are the same.
  static_cast<void>(launcher::ask_to_stop(*store_, elastic::Keys(kJobName), "everstep chaos"));
}

bool ChaosJob::has_ended() { return still_running().empty(); }

std::vector<std::string> ChaosJob::still_running() {
  std::vector<std::string> names;
  if (train_.is_running()) names.emplace_back("everstep train");
  for (const WorkerProcess& worker : workers()) names.push_back("worker " + worker.name);
  return names;
}

bool ChaosJob::is_good_end(const std::string& worker, int wait_status) const {
  if (!WIFSIGNALED(wait_status)) {
    const int code = WEXITSTATUS(wait_status);
    return code == 0 || code == kRestart || code == kUnreachable;
  }
  if (WTERMSIG(wait_status) == SIGKILL) return killed_.contains(worker);
  const std::string log = log_of(worker);
  const bool has_begun = log.find("event=started") != std::string::npos;
  if (WTERMSIG(wait_status) == SIGSEGV) {
    // One whose libraries are being loaded cannot report it yet.
    const bool is_reported = log.find("event=crashed signal=SIGSEGV worker=" + worker) != std::string::npos;
    return crashed_.contains(worker) && (is_reported || !has_begun);
  }
  return WTERMSIG(wait_status) == SIGTERM && terminated_.contains(worker) && !has_begun;
}

std::vector<BadEnd> ChaosJob::bad_ends() const {
  std::vector<BadEnd> bad;
  const auto judge = [&](const std::string& who, const std::string& worker, int status) {
    if (is_good_end(worker, status)) return;
    const std::string log = log_of(worker);
    const std::string words = log.substr(log.rfind('\n', log.size() < 2 ? 0 : log.size() - 2) + 1);
    bad.push_back({who, end_text(status) + ", and says last: " + std::string(trimmed(words))});
  };
  if (const auto status = train_.wait_status()) judge("everstep train", "", *status);
  for (const Joined& joined : joined_) {
    if (const auto status = joined.process.wait_status()) judge("worker " + joined.name, joined.name, *status);
  }
  for (const std::string& line : lines_with(log_of_train(), "event=worker_died ")) {
    const std::string name = word_after(line, " name=");
    judge("worker " + name, name, wait_status_of(word_after(line, " signal="), word_after(line, " exit=")));
  }
  return bad;
}

std::int64_t ChaosJob::generations() const { return std::ssize(lines_with(log_of_train(), "event=generation ")); }

std::optional<JobStatus> ChaosJob::status() {
  const auto reply = read(elastic::Keys(kJobName).live());
  if (!reply) return std::nullopt;
  elastic::View view;
  view.replace(reply->reads.front(), reply->revision);
  return read_opened_status(view, kJobName, true);
}

// The seal of its records is made from the job's spec, which is not there at once.
bool ChaosJob::open_store() {
  if (is_open_) return true;
  const auto found = find_job(*store_, kJobName, secret_);
  if (!found || !*found) return false;
  store_ = std::make_unique<elastic::SealedStore>(std::move(store_), (*found)->seal);
  is_open_ = true;
  return true;
}

Result<elastic::TxnReply> ChaosJob::read(const std::string& prefix) {
  if (!open_store()) return not_found("there is no job yet");
  return store_->transact({{}, {elastic::list(prefix)}}, kCall);
}

std::string ChaosJob::log_of(const std::string& worker) const {
  // `everstep train` counts the logs of its own.
  const bool is_local = worker.starts_with('w');
  const auto path = is_local ? order_.directory / "run" / ("worker-" + worker.substr(1) + ".log") : log_path(worker);
  auto text = read_file(path.string(), kMostLog);
  return text ? std::move(text).value() : "";
}

std::string ChaosJob::log_of_train() const {
  auto text = read_file((order_.directory / "train.log").string(), kMostLog);
  return text ? std::move(text).value() : "";
}

}  // namespace everstep::launcher::chaos
