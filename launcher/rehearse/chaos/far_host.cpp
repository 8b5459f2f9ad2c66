#include "launcher/rehearse/chaos/far_host.h"

#include <chrono>
#include <thread>
#include <utility>

#include <unistd.h>

#include "launcher/cli/process_table.h"

namespace everstep::launcher::chaos {
namespace {

constexpr std::chrono::milliseconds kToolEndsWithin{5000};
constexpr int kNetworks = 254;

Status run(std::vector<std::string> words, const std::filesystem::path& log) {
  std::string line;
  for (const std::string& word : words) line.append(line.empty() ? "" : " ").append(word);
  auto process = ChildProcess::start(std::move(words), log);
  if (!process) return process.error();
  if (process->ends_within(kToolEndsWithin) && process->wait_status() == 0) return {};
  return Error{ErrorCode::kUnavailable, "'" + line + "' fails", "look at " + log.string()};
}

// The two ends of the cable.
std::string near_device() { return "ev" + std::to_string(::getpid()) + "n"; }
std::string far_device() { return "ev" + std::to_string(::getpid()) + "f"; }

// Once the last program of the chain runs.
bool is_ready(pid_t process) {
  const auto words = arguments_of(process);
  return words.size() == 1 && words.front() == "infinity";
}

}  // namespace

bool FarHost::is_possible() {
  return ::geteuid() == 0 && run({"unshare", "--net", "--mount", "ip", "-Version"}, "/dev/null") &&
         run({"nsenter", "--version"}, "/dev/null") && run({"tc", "-Version"}, "/dev/null");
}

Result<std::unique_ptr<FarHost>> FarHost::start(const std::filesystem::path& log) {
  auto holder = ChildProcess::start({"unshare", "--net", "--mount", "sleep", "infinity"}, log);
  if (!holder) return holder.error();
  const auto limit = std::chrono::steady_clock::now() + kToolEndsWithin;
  while (!is_ready(holder->pid())) {
    if (std::chrono::steady_clock::now() >= limit) return Error{ErrorCode::kUnavailable, "no network namespace", ""};
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const std::string network = "198.18." + std::to_string(1 + ::getpid() % kNetworks);
  std::unique_ptr<FarHost> host(new FarHost(network, std::move(*holder), log));
  EVERSTEP_TRY(host->connect());
  return host;
}

std::vector<std::string> FarHost::prefix() const {
  return {"nsenter", "--target", std::to_string(holder_.pid()), "--net", "--mount"};
}

Status FarHost::connect() {
  const std::string near = near_device();
  const std::string far = far_device();
  EVERSTEP_TRY(ip({"link", "add", near, "type", "veth", "peer", "name", far, "netns", std::to_string(holder_.pid())}));
  EVERSTEP_TRY(ip({"address", "add", near_address() + "/30", "dev", near}));
  EVERSTEP_TRY(ip({"address", "add", etcd_address() + "/32", "dev", near}));
  EVERSTEP_TRY(ip({"link", "set", near, "up"}));
  EVERSTEP_TRY(ip_there({"link", "set", "lo", "up"}));
  EVERSTEP_TRY(ip_there({"address", "add", far_address() + "/30", "dev", far}));
  EVERSTEP_TRY(ip_there({"link", "set", far, "up"}));
  return ip_there({"route", "add", etcd_address() + "/32", "via", near_address()});
}

Status FarHost::cut(Cut cut) {
  if (cut != Cut::kEtcd) lost_there_.push_back(near_address());
  if (cut != Cut::kPeers) lost_there_.push_back(etcd_address());
  for (const std::string& address : lost_there_) {
    EVERSTEP_TRY(ip_there({"route", "prepend", "blackhole", address + "/32"}));
  }
  if (cut != Cut::kAll) return {};
  is_lost_here_ = true;
  return ip({"route", "prepend", "blackhole", far_address() + "/32"});
}

Status FarHost::thin() {
  const auto words = [](const std::string& device) {
    return std::vector<std::string>{"tc",   "qdisc",   "add",   "dev", device,  "root", "tbf",
                                    "rate", "512kbit", "burst", "4kb", "limit", "16kb"};
  };
  is_thin_ = true;
  EVERSTEP_TRY(run(words(near_device()), log_));
  return run_there(words(far_device()));
}

Status FarHost::heal() {
  if (std::exchange(is_thin_, false)) {
    EVERSTEP_TRY(run({"tc", "qdisc", "del", "dev", near_device(), "root"}, log_));
    EVERSTEP_TRY(run_there({"tc", "qdisc", "del", "dev", far_device(), "root"}));
  }
  if (std::exchange(is_lost_here_, false)) EVERSTEP_TRY(ip({"route", "del", "blackhole", far_address() + "/32"}));
  for (const std::string& address : std::exchange(lost_there_, {})) {
    EVERSTEP_TRY(ip_there({"route", "del", "blackhole", address + "/32"}));
  }
  return {};
}

Status FarHost::ip(const std::vector<std::string>& words) const {
  std::vector<std::string> all{"ip"};
  all.insert(all.end(), words.begin(), words.end());
  return run(std::move(all), log_);
}

Status FarHost::ip_there(const std::vector<std::string>& words) const {
  std::vector<std::string> all{"ip"};
  all.insert(all.end(), words.begin(), words.end());
  return run_there(all);
}

Status FarHost::run_there(const std::vector<std::string>& words) const {
  std::vector<std::string> all = prefix();
  all.insert(all.end(), words.begin(), words.end());
  return run(std::move(all), log_);
}

}  // namespace everstep::launcher::chaos
