#include "launcher/supervise/etcd_server.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

#include "elastic/etcd_client.h"
#include "launcher/supervise/etcd_process.h"
#include "tests/send_signal.h"
#include "tests/temporary_directory.h"

namespace everstep::launcher {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr auto kLong = seconds(40);

const std::string& url_of(const EtcdServer& server) { return server.address().urls.front(); }

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

elastic::EtcdOptions options_of(const EtcdServer& server) {
  const EtcdAddress& address = server.address();
  return {address.urls, content(address.ca_path), content(address.certificate_path), content(address.key_path)};
}

std::unique_ptr<elastic::KvStore> client_of(const EtcdServer& server) {
  auto store = elastic::connect_etcd(options_of(server));
  EVERSTEP_CHECK(store.ok(), "cannot talk to our own etcd");
  return std::move(*store);
}

TEST(EtcdServer, GoesOnFromItsDataAtOtherPorts) {
  const TemporaryDirectory directory;
  const auto data = directory.path() / "etcd";
  auto server = EtcdServer::start(data, directory.path() / "log", kLong);
  ASSERT_TRUE(server.ok()) << server.error();
  ASSERT_TRUE(client_of(**server)->transact({{}, {elastic::put("/a", "1")}}, kLong).ok());
  const pid_t first = (*server)->pid();
  const std::string first_url = url_of(**server);
  EXPECT_NE(::getpgid(first), ::getpgrp()) << "Ctrl-C must not end it before us";
  server->reset();
  EXPECT_EQ(send_signal(first, 0), -1) << "it is gone when the object is";

  server = EtcdServer::start(data, directory.path() / "log", kLong);
  ASSERT_TRUE(server.ok()) << server.error();
  EXPECT_NE(url_of(**server), first_url);
  const auto reply = client_of(**server)->transact({{}, {elastic::get("/a")}}, kLong);
  ASSERT_TRUE(reply.ok()) << reply.error();
  EXPECT_EQ(reply->reads.at(0).at(0).value, "1");
}

bool is_taken(const elastic::EtcdOptions& options) {
  const auto store = elastic::connect_etcd(options);
  return store && (*store)->transact({{}, {elastic::put("/a", "1")}}, seconds(2)).ok();
}

TEST(EtcdServer, TakesNobodyWithoutOneOfItsOwnCertificates) {
  const TemporaryDirectory directory;
  const auto server = EtcdServer::start(directory.path() / "etcd", directory.path() / "log", kLong);
  const auto other = EtcdServer::start(directory.path() / "other", directory.path() / "log", kLong);
  ASSERT_TRUE(server.ok() && other.ok());
  const elastic::EtcdOptions own = options_of(**server);
  elastic::EtcdOptions plain = own;
  plain.endpoints = {"http" + url_of(**server).substr(5)};
  elastic::EtcdOptions nobody = own;
  nobody.certificate.clear();
  nobody.key.clear();
  elastic::EtcdOptions stranger = options_of(**other);
  stranger.endpoints = own.endpoints;
  stranger.ca = own.ca;
  EXPECT_FALSE(is_taken(plain));
  EXPECT_FALSE(is_taken(nobody));
  EXPECT_FALSE(is_taken(stranger)) << "the certificate of another job";
  EXPECT_TRUE(is_taken(own));
}

// What a peer without a certificate is told at the port for other servers. The option that names it is in the command
// line of the process.
TEST(EtcdServer, TakesNoPeerWithoutOneOfItsOwnCertificates) {
  const TemporaryDirectory directory;
  const auto server = EtcdServer::start(directory.path() / "etcd", directory.path() / "log", kLong);
  ASSERT_TRUE(server.ok()) << server.error();
  const std::string words = content("/proc/" + std::to_string((*server)->pid()) + "/cmdline");
  const std::string option = "--listen-peer-urls=https://";
  const std::string place = words.c_str() + words.find(option) + option.size();
  const std::string asks = "printf 'GET /members HTTP/1.0\\r\\n\\r\\n' | openssl s_client -ign_eof -connect " + place;
  const auto answer = [&](const std::string& more) {
    [[maybe_unused]] const int refused = std::system((asks + more + " >" + directory.file("answer") + " 2>&1").c_str());
    return content(directory.file("answer"));
  };
  EXPECT_THAT(answer(""), AllOf(HasSubstr("alert"), Not(HasSubstr("clientURLs"))));
  const EtcdAddress& own = (*server)->address();
  EXPECT_THAT(answer(" -cert " + own.certificate_path + " -key " + own.key_path), HasSubstr("clientURLs"));
}

// Whether a process of user and group nobody can open the file. Only root can start one: for others, modes have to do.
bool is_open_to_nobody(const std::filesystem::path& path) {
  constexpr uid_t kNobody = 65534;
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is_nobody = ::setgroups(0, nullptr) == 0 && ::setgid(kNobody) == 0 && ::setuid(kNobody) == 0;
    ::_exit(is_nobody && ::open(path.c_str(), O_RDONLY | O_CLOEXEC) >= 0 ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status != 0;
}

TEST(EtcdServer, KeepsItsFilesToItsOwner) {
  using std::filesystem::perms;
  const TemporaryDirectory directory;
  std::filesystem::permissions(directory.path(), perms(0755));
  const auto data = directory.path() / "etcd";
  const auto server = EtcdServer::start(data, directory.path() / "log", kLong);
  ASSERT_TRUE(server.ok()) << server.error();
  std::vector<std::filesystem::path> all{data};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data)) all.push_back(entry.path());
  for (const auto& one : all) {
    const perms mode = std::filesystem::status(one).permissions();
    EXPECT_EQ(mode & (perms::group_all | perms::others_all), perms::none) << one;
    EXPECT_FALSE(is_open_to_nobody(one)) << one;
  }
  EXPECT_THAT(all, Contains(std::filesystem::path((*server)->address().key_path)));
  EXPECT_EQ(is_open_to_nobody(directory.path()), ::geteuid() == 0) << "nobody gets as far as the directory";
}

TEST(EtcdServer, IsSeenToHaveDied) {
  const TemporaryDirectory directory;
  const auto server = EtcdServer::start(directory.path() / "etcd", directory.path() / "log", kLong);
  ASSERT_TRUE(server.ok()) << server.error();
  EXPECT_TRUE((*server)->is_running());
  const pid_t pid = (*server)->pid();
  send_signal(pid, SIGKILL);
  siginfo_t how{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &how, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE((*server)->is_running());
}

TEST(EtcdServer, StartsAgainOnItsDataAndAtItsAddress) {
  const TemporaryDirectory directory;
  const auto server = EtcdServer::start(directory.path() / "etcd", directory.path() / "log", kLong);
  ASSERT_TRUE(server.ok()) << server.error();
  const auto client = client_of(**server);
  ASSERT_TRUE(client->transact({{}, {elastic::put("/a", "1")}}, kLong).ok());
  EXPECT_EQ((*server)->wait_status(), std::nullopt);
  send_signal((*server)->pid(), SIGKILL);
  while ((*server)->is_running()) {
  }
  EXPECT_EQ((*server)->wait_status(), SIGKILL);
  ASSERT_TRUE((*server)->start_again().ok());
  EXPECT_TRUE((*server)->answers(kLong));
  const auto reply = client->transact({{}, {elastic::get("/a")}}, kLong);
  ASSERT_TRUE(reply.ok()) << reply.error();
  EXPECT_EQ(reply->reads.at(0).at(0).value, "1");
}

TEST(EtcdServer, SaysItsLastWordsWithoutTheFormOfALog) {
  const std::string warning = R"({"level":"warn","ts":"2026-11-17T22:00:00Z","msg":"apply took \"too\" long"})";
  const std::string fatal =
      R"({"level":"fatal","ts":"…","msg":"failed to commit tx","error":"no space left on device"})";
  EXPECT_EQ(last_words_of_etcd(""), "");
  EXPECT_EQ(last_words_of_etcd(warning + "\n"), R"(apply took "too" long)");
  EXPECT_EQ(last_words_of_etcd(fatal + "\n" + warning + "\n\n"), "failed to commit tx: no space left on device");
  EXPECT_EQ(last_words_of_etcd(warning + "\npanic: out of luck\n"), "panic: out of luck");
}

TEST(EtcdServer, SaysWhatToInstallIfThereIsNone) {
  const TemporaryDirectory directory;
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", directory.path().c_str(), 1);
  const auto server = EtcdServer::start(directory.path() / "data", directory.path() / "log", kLong);
  ::setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(server.ok());
  EXPECT_EQ(server.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(server.error().line(), HasSubstr("etcd-server"));
}

TEST(EtcdServer, SaysWhyItDoesNotComeUp) {
  const TemporaryDirectory directory;
  const auto log = directory.path() / "log";
  const auto server = EtcdServer::start("/proc/no-place-for-data", log, kLong);
  ASSERT_FALSE(server.ok());
  EXPECT_EQ(server.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(server.error().line(), HasSubstr("/proc/no-place-for-data"));
  EXPECT_THAT(server.error().hint, HasSubstr(log.string()));
}

// The process in between starts it and is killed without a chance to clean up. gRPC, which other tests have used, does
// not work after a fork.
TEST(EtcdProcess, DiesWithTheProcessThatStartedIt) {
  const TemporaryDirectory directory;
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t starter = ::fork();
  if (starter == 0) {
    const std::string url = "http://127.0.0.1:" + std::to_string(unused_port());
    const auto etcd = start_etcd({"--data-dir=" + directory.file("etcd"), "--listen-client-urls=" + url,
                                  "--advertise-client-urls=" + url, "--listen-peer-urls=http://127.0.0.1:0"},
                                 directory.path() / "log");
    const pid_t pid = etcd ? etcd->pid() : -1;
    if (::write(ends[1], &pid, sizeof pid) != sizeof pid) ::_exit(1);
    ::pause();
  }
  pid_t etcd = -1;
  ASSERT_EQ(::read(ends[0], &etcd, sizeof etcd), static_cast<ssize_t>(sizeof etcd));
  EXPECT_EQ(send_signal(etcd, 0), 0);
  send_signal(starter, SIGKILL);
  ::waitpid(starter, nullptr, 0);
  ASSERT_GT(etcd, 0);
  for (int round = 0; round < 500 && send_signal(etcd, 0) == 0; ++round) ::usleep(10'000);
  EXPECT_EQ(send_signal(etcd, 0), -1);
}

}  // namespace
}  // namespace everstep::launcher
