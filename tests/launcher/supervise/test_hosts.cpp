#include "tests/launcher/supervise/test_hosts.h"

#include <chrono>
#include <thread>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "launcher/cli/process_table.h"

namespace everstep::launcher {
namespace {

constexpr std::chrono::seconds kCommandEndsWithin{100};  // the machine may be busy with other things

int run_words(std::vector<std::string> words, const std::filesystem::path& log) {
  auto process = ChildProcess::start(std::move(words), log);
  EVERSTEP_CHECK(process.ok(), process.error().line());
  EVERSTEP_CHECK(process->ends_within(kCommandEndsWithin), "a command does not end");
  return process->wait_status().value_or(-1);
}

void must(const std::string& command, const std::filesystem::path& log) {
  EVERSTEP_CHECK(run_words({"sh", "-ec", command}, log) == 0, "'" + command + "' fails: see " + log.string());
}

// The last program of the chain is there, so the namespaces are, too.
ChildProcess start_holder(const std::string& name, const std::filesystem::path& log) {
  auto holder = ChildProcess::start({"unshare", "--net", "--mount", "--uts", "sh", "-ec",
                                     "hostname " + name + "; mkdir -p /run/everstep-test; " +
                                         "mount -t tmpfs -o mode=0700 tmpfs /run/everstep-test; exec sleep infinity"},
                                    log);
  EVERSTEP_CHECK(holder.ok(), holder.error().line());
  const auto limit = std::chrono::steady_clock::now() + kCommandEndsWithin;
  while (arguments_of(holder->pid()) != std::vector<std::string>{"infinity"}) {
    EVERSTEP_CHECK(std::chrono::steady_clock::now() < limit && holder->is_running(), "no namespaces");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return std::move(*holder);
}

std::string own(const std::string& what) { return "ev" + std::to_string(::getpid()) + what; }

}  // namespace

TestHost::TestHost(const std::filesystem::path& log, const std::string& network, int number)
    : name_("host" + std::to_string(number)),
      address_("198.18." + network + "." + std::to_string(10 + number)),
      address_v6_("fd00:198:18:" + network + "::" + std::to_string(10 + number)),
      cable_(own("h" + std::to_string(number))),
      holder_(start_holder(name_, log)),
      log_(log) {
  must("ip link add " + cable_ + " type veth peer name eth0 netns " + std::to_string(holder_.pid()) +
           " && ip link set " + cable_ + " master " + own("s") + " up",
       log_);
  EVERSTEP_CHECK(run("ip link set lo up && ip address add " + address_ + "/24 dev eth0 && ip address add " +
                     address_v6_ + "/64 dev eth0 nodad && ip link set eth0 up") == 0,
                 "a host gets no address");
}

TestHost::Words TestHost::inside() const {
  return {"nsenter", "--target", std::to_string(holder_.pid()), "--net", "--mount", "--uts"};
}

int TestHost::run(const std::string& command) const {
  Words words = inside();
  words.insert(words.end(), {"sh", "-c", command});
  return run_words(std::move(words), log_);
}

void TestHost::close_all_ports_but(int first, int last) const {
  const std::string ports = std::to_string(first) + "-" + std::to_string(last);
  EVERSTEP_CHECK(
      run("nft 'table inet wall { chain input { type filter hook input priority 0; policy drop; iif lo accept; "
          "ct state established,related accept; meta l4proto { icmp, ipv6-icmp } accept; tcp dport " +
          ports + " accept; }; }'") == 0,
      "no firewall: see " + log_.string());
}

void TestHost::cut() const { must("ip link set " + cable_ + " down", log_); }
void TestHost::heal() const { must("ip link set " + cable_ + " up", log_); }

bool TestHosts::are_possible() { return ::geteuid() == 0; }

TestHosts::TestHosts(const std::filesystem::path& log, int count) : switch_(own("s")) {
  const std::string network = std::to_string(1 + ::getpid() % 254);
  address_ = "198.18." + network + ".1";
  must("ip link add " + switch_ + " type bridge && ip address add " + address_ + "/24 dev " + switch_ +
           " && ip link set " + switch_ + " up",
       log);
  for (int number = 0; number < count; ++number) hosts_.push_back(std::make_unique<TestHost>(log, network, number));
}

TestHosts::~TestHosts() {
  for (const auto& host : hosts_) run_words({"ip", "link", "del", host->cable_}, "/dev/null");
  run_words({"ip", "link", "del", switch_}, "/dev/null");
}

}  // namespace everstep::launcher
