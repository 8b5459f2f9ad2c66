#include "launcher/elastic/etcd_server.h"

#include <csignal>
#include <cstdlib>

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "elastic/etcd_client.h"
#include "launcher/elastic/etcd_process.h"
#include "tests/temporary_directory.h"

namespace everstep::launcher {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

constexpr auto kLong = seconds(40);

std::unique_ptr<elastic::KvStore> client_of(const EtcdServer& server) {
  auto store = elastic::connect_etcd({.endpoints = {server.url()}});
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
  const std::string first_url = (*server)->url();
  EXPECT_NE(::getpgid(first), ::getpgrp()) << "Ctrl-C must not end it before us";
  server->reset();
  EXPECT_EQ(::kill(first, 0), -1) << "it is gone when the object is";

  server = EtcdServer::start(data, directory.path() / "log", kLong);
  ASSERT_TRUE(server.ok()) << server.error();
  EXPECT_NE((*server)->url(), first_url);
  const auto reply = client_of(**server)->transact({{}, {elastic::get("/a")}}, kLong);
  ASSERT_TRUE(reply.ok()) << reply.error();
  EXPECT_EQ(reply->reads.at(0).at(0).value, "1");
}

TEST(EtcdServer, IsSeenToHaveDied) {
  const TemporaryDirectory directory;
  const auto server = EtcdServer::start(directory.path() / "etcd", directory.path() / "log", kLong);
  ASSERT_TRUE(server.ok()) << server.error();
  EXPECT_TRUE((*server)->is_running());
  const pid_t pid = (*server)->pid();
  ::kill(pid, SIGKILL);
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
  ::kill((*server)->pid(), SIGKILL);
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
  const auto server = EtcdServer::start(directory.path() / "etcd", directory.path() / "log", kLong);
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
  EXPECT_EQ(::kill(etcd, 0), 0);
  ::kill(starter, SIGKILL);
  ::waitpid(starter, nullptr, 0);
  ASSERT_GT(etcd, 0);
  for (int round = 0; round < 500 && ::kill(etcd, 0) == 0; ++round) ::usleep(10'000);
  EXPECT_EQ(::kill(etcd, 0), -1);
}

}  // namespace
}  // namespace everstep::launcher
