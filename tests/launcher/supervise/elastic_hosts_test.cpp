// Jobs over several hosts, each with a network, a name and a directory for sockets of its own, behind a firewall that
// lets in nothing but calls to the ports of --port-range.
#include <csignal>
#include <filesystem>
#include <iostream>

#include <gmock/gmock.h>

#include "tests/elastic/etcd/certificates.h"
#include "tests/elastic/etcd_cluster.h"
#include "tests/launcher/supervise/elastic_job.h"
#include "tests/launcher/supervise/test_hosts.h"

namespace everstep::launcher {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;
using namespace std::string_literals;

constexpr int kFirstPort = 4700;
constexpr int kLastPort = 4709;

class ElasticHosts : public ElasticJob {
 protected:
  void SetUp() override {
    ASSERT_TRUE(TestHosts::are_possible()) << "only root can make hosts";
    hosts_ = std::make_unique<TestHosts>(path("hosts.log"), 2);
    for (const int number : {0, 1}) host(number).close_all_ports_but(kFirstPort, kLastPort);
    cluster_ = std::make_unique<elastic::EtcdCluster>(1, std::nullopt, Words{}, hosts_->address());
    file("secret", "a secret of the job\n");
    std::filesystem::permissions(path("secret"), std::filesystem::perms::owner_read);
  }

  void TearDown() override {
    for (const auto& program : joined_) {
      if (HasFailure()) std::cerr << "--- a worker that joined\n" << program->log();
    }
    joined_.clear();
  }

  const TestHost& host(int number) const { return (*hosts_)[number]; }
  std::string secret() const { return "--secret-file=" + path("secret"); }

  // What README tells to say on each host.
  Words etcd_words() const { return {"--etcd=" + cluster_->endpoint(0), "--etcd-plain-text", "--job=job"}; }
  Words job_words(int workers) const {
    return {"--workers=" + std::to_string(workers), "--shapes=1=1x1,2=2x1,3=3x1,4=4x1"};
  }
  static Words network_words(const std::string& bind, const std::string& advertise) {
    return {"--bind=" + bind, "--advertise=" + advertise, "--port-range=4700-4709"};
  }
  Words network_v4(int number) const { return network_words("0.0.0.0", host(number).address()); }

  static Words all(std::initializer_list<Words> parts) {
    Words words;
    for (const Words& part : parts) words.insert(words.end(), part.begin(), part.end());
    return words;
  }

  // All programs of a host share the path of their directory for sockets, which is another one on each.
  static Words on(const TestHost& host) {
    Words words = host.inside();
    words.insert(words.end(), {"env", "XDG_RUNTIME_DIR=/run/everstep-test"});
    return words;
  }

  testing::AssertionResult starts_on_host(int number, int workers, const Words& more) {
    wrapper = on(host(number));
    return starts(workers, more);
  }

  // `everstep worker` as somebody types it on another host.
  RunningProgram& join_from(int number, const std::string& name, const Words& more) {
    Words words = all({{"worker", "--name=" + name}, etcd_words(), more});
    joined_.push_back(std::make_unique<RunningProgram>(words, paced(), on(host(number))));
    return *joined_.back();
  }

  // Ctrl-C ends the job, and with it the workers on other hosts that are still there.
  void expect_stop_of_all() {
    expect_stop();
    for (const auto& program : joined_) {
      if (program->pid() > 0) program->wait(60s);
    }
    joined_.clear();
  }

  // What a command of the shell prints there.
  std::string told_by(int number, const std::string& command) const {
    EXPECT_EQ(host(number).run("(" + command + ") > " + path("told")), 0) << command;
    return text_of("told");
  }

  std::string log_of_worker(int number) const { return text_of("run/worker-" + std::to_string(number) + ".log"); }

  // How many peers it has had over TLS in a generation of so many workers.
  static bool says_wired(const std::string& log, int over_unix, int over_tls) {
    return log.find("peers_over_unix=" + std::to_string(over_unix) + " peers_over_tls=" + std::to_string(over_tls)) !=
           std::string::npos;
  }

  std::unique_ptr<TestHosts> hosts_;
  std::unique_ptr<elastic::EtcdCluster> cluster_;
  std::vector<std::unique_ptr<RunningProgram>> joined_;
};

TEST_F(ElasticHosts, TrainThroughEverythingThatHappensToThem) {
  ASSERT_TRUE(starts_on_host(0, 2, all({etcd_words(), network_v4(0), job_words(2), {secret()}})));
  int before = generation();
  join_from(1, "b0", all({network_v4(1), {secret()}}));
  RunningProgram& victim = join_from(1, "b1", all({network_v4(1), {secret()}}));
  ASSERT_TRUE(trains_with(4, before));
  EXPECT_TRUE(becomes("two wires", [&] { return says_wired(log_of_worker(0), 1, 2); })) << log_of_worker(0);
  ASSERT_TRUE(saves(step() + 10));

  before = generation();
  victim.signal(SIGKILL);
  ASSERT_TRUE(trains_with(3, before)) << "after a kill on the other host";
  ASSERT_TRUE(goes_on());

  before = generation();
  RunningProgram& leaver = join_from(1, "b2", all({network_v4(1), {secret()}}));
  ASSERT_TRUE(trains_with(4, before)) << "after a join on the other host";
  before = generation();
  leaver.signal(SIGTERM);
  ASSERT_TRUE(trains_with(3, before)) << "after a drain on the other host";
  EXPECT_EQ(leaver.wait(60s).exit_code, 75);
  ASSERT_TRUE(saves(step() + 10));

  before = generation();
  host(1).cut();
  ASSERT_TRUE(trains_with(2, before)) << "after the other host was cut off";
  ASSERT_TRUE(saves(step() + 10));
  before = generation();
  host(1).heal();
  ASSERT_TRUE(trains_with(3, before)) << "after the other host came back";
  ASSERT_TRUE(saves(step() + 10));

  expect_stop_of_all();
  expect_proofs({secret()});
}

TEST_F(ElasticHosts, MayHaveIpv6) {
  const auto network = [&](int number) { return network_words("::", host(number).address_v6()); };
  ASSERT_TRUE(starts_on_host(0, 1, all({etcd_words(), network(0), job_words(1), {secret()}})));
  const int before = generation();
  join_from(1, "b0", all({network(1), {secret()}}));
  ASSERT_TRUE(trains_with(2, before));
  EXPECT_TRUE(becomes("a wire", [&] { return says_wired(log_of_worker(0), 0, 1); })) << log_of_worker(0);
  ASSERT_TRUE(saves(step() + 10));
  expect_stop_of_all();
  expect_proofs({secret()});
}

TEST_F(ElasticHosts, MayProveThemselvesByCertificates) {
  const elastic::Certificates authority;
  const auto tls = [&](const std::string& name) -> Words {
    const elastic::ServerCertificates files = authority.make(name, 1);
    return {"--tls-ca=" + files.ca, "--tls-cert=" + files.certificate, "--tls-key=" + files.key};
  };
  ASSERT_TRUE(starts_on_host(0, 1, all({etcd_words(), network_v4(0), tls("a"), job_words(1), {secret()}})));
  const int before = generation();
  join_from(1, "b0", all({network_v4(1), tls("b"), {secret()}}));
  ASSERT_TRUE(trains_with(2, before));
  EXPECT_TRUE(becomes("a wire", [&] { return says_wired(log_of_worker(0), 0, 1); })) << log_of_worker(0);
  expect_stop_of_all();
  expect_proofs({secret()});
}

TEST_F(ElasticHosts, NeedASecret) {
  ASSERT_TRUE(starts_on_host(0, 2, all({etcd_words(), job_words(2)})));
  EXPECT_EQ(told_by(0, "ss -Hltn"), "") << "something listens for other hosts";
  const int before = generation();
  const Ended refused = join_from(1, "b0", {}).wait(60s);
  EXPECT_EQ(refused.exit_code, 64);
  EXPECT_THAT(refused.out + refused.log, HasSubstr("openssl rand -hex 32"));
  ASSERT_TRUE(goes_on());
  EXPECT_EQ(generation(), before);
  expect_stop_of_all();
  expect_proofs();
}

// From the other host, and as another user of the same one. $1 is the address of a worker, the others are ports.
constexpr const char* kAttacks = R"(
exec 2>/dev/null
host=$1
shift
for port in "$@"; do
  head -c 200000 /dev/urandom | timeout 2 bash -c "cat > /dev/tcp/$host/$port"
  printf 'GET / HTTP/1.0\r\n\r\n' | timeout 2 bash -c "cat > /dev/tcp/$host/$port"
  timeout 2 openssl s_client -connect $host:$port -tls1_2 < /dev/null
  timeout 2 openssl s_client -connect $host:$port -tls1_3 < /dev/null
  timeout 2 openssl s_client -connect $host:$port -tls1_3 -psk_identity everstep-wire-1 -psk 00112233445566778899 < /dev/null
  for i in $(seq 200); do (exec 3<>/dev/tcp/$host/$port) & done
  timeout 3 bash -c "exec 3<>/dev/tcp/$host/$port; while sleep 0.2; do printf x >&3; done" &
done
wait
exit 0
)";

constexpr const char* kAsNobody = "setpriv --reuid=65534 --regid=65534 --clear-groups ";

// Calls every socket of this host whose path is given, and prints those that let it in.
constexpr const char* kCallSockets = R"(
import socket, sys
for path in sys.argv[1:]:
    try:
        socket.socket(socket.AF_UNIX).connect(path)
        print(path)
    except OSError:
        pass
)";

TEST_F(ElasticHosts, AreNotDisturbedByStrangers) {
  file("attack", kAttacks);
  ASSERT_TRUE(starts_on_host(0, 2, all({etcd_words(), network_v4(0), job_words(2), {secret()}})));
  int before = generation();
  join_from(1, "b0", all({network_v4(1), {secret()}}));
  ASSERT_TRUE(trains_with(3, before));
  before = generation();
  const std::string attack = "bash " + path("attack") + " " + host(0).address() + " $(seq 4700 4709)";
  std::filesystem::permissions(path(""), std::filesystem::perms(0755));  // so that another user finds it
  EXPECT_EQ(host(1).run(attack), 0);
  EXPECT_EQ(host(0).run(kAsNobody + attack), 0);
  EXPECT_NE(host(0).run(kAsNobody + "ls /run/everstep-test/everstep"s), 0);
  ASSERT_TRUE(saves(step() + 20));
  EXPECT_EQ(generation(), before);
  std::size_t refusals = 0;
  for (const int number : {0, 1}) {
    const std::string log = log_of_worker(number);
    for (std::size_t at = 0; (at = log.find("event=connection_refused", at)) != std::string::npos; ++at) ++refusals;
  }
  EXPECT_GE(refusals, 2U) << "nobody noticed";
  EXPECT_LE(refusals, 200U) << "thousands of calls made too many lines";
  host(1).cut();  // an honest worker still gets in afterwards
  ASSERT_TRUE(trains_with(2, before));
  before = generation();
  host(1).heal();
  ASSERT_TRUE(trains_with(3, before));
  expect_stop_of_all();
  expect_proofs({secret()});
}

// The plain `everstep train`: no secret, and an etcd of its own. Whoever has another uid gets in nowhere.
TEST_F(ElasticHosts, WithoutASecretAreClosedToOtherUsers) {
  file("attack", kAttacks);
  file("call", kCallSockets);
  ASSERT_TRUE(starts_on_host(0, 2, job_words(2)));
  const int before = generation();
  std::filesystem::permissions(path(""), std::filesystem::perms(0755));
  const std::string ports = "$(ss -Hltn | sed 's/.*127.0.0.1:\\([0-9]*\\) .*/\\1/')";
  EXPECT_THAT(told_by(0, "ss -Hltn | grep -v 127.0.0.1 || true"), "") << "something listens for other hosts";
  EXPECT_EQ(told_by(0, "echo " + ports + " | wc -w"), "2\n") << "more listens than etcd";
  const std::string sockets = "$(find /run/everstep-test -type s)";
  const std::string call = "/usr/bin/python3 " + path("call") + " " + sockets;
  EXPECT_THAT(told_by(0, call), HasSubstr("/run/everstep-test/everstep/")) << "their own user gets in";
  EXPECT_EQ(told_by(0, kAsNobody + call), "");
  EXPECT_EQ(host(0).run(kAsNobody + "bash "s + path("attack") + " 127.0.0.1 " + ports), 0);
  ASSERT_TRUE(saves(step() + 20));
  EXPECT_EQ(generation(), before);
  expect_stop_of_all();
  expect_proofs();
}

}  // namespace
}  // namespace everstep::launcher
