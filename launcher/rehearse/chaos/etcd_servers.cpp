#include "launcher/rehearse/chaos/etcd_servers.h"

#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include "elastic/etcd_client.h"
#include "launcher/http/http_client.h"
#include "launcher/supervise/etcd_process.h"

namespace everstep::launcher::chaos {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kStartsWithin{20'000};
constexpr milliseconds kAnswersWithin{500};
constexpr int kTriesWithOtherPorts = 5;

constexpr const char* kLoopback = "127.0.0.1";

std::string url_of(const std::string& host, int port) { return "http://" + host + ":" + std::to_string(port); }

std::string joined(const std::vector<std::string>& urls) {
  std::string text;
  for (const std::string& url : urls) text.append(text.empty() ? "" : ",").append(url);
  return text;
}

}  // namespace

Result<std::unique_ptr<EtcdServers>> EtcdServers::start(int servers, std::filesystem::path directory,
                                                        EtcdPlaces places) {
  std::unique_ptr<EtcdServers> all(new EtcdServers(std::move(directory), std::move(places)));
  for (int tries = 0; tries < kTriesWithOtherPorts; ++tries) {
    EVERSTEP_TRY(all->start_all(servers));
    const auto limit = Clock::now() + kStartsWithin;
    bool all_run = true;
    for (int server = 0; server < servers; ++server) {
      while ((all_run = all_run && all->servers_[server].process->is_running()) && !all->answers(server)) {
        if (Clock::now() >= limit) return Error{ErrorCode::kUnavailable, "our own etcd servers do not come up", ""};
      }
    }
    if (all_run) return all;
    // Somebody took one of the ports between our look and its start.
  }
  return Error{ErrorCode::kUnavailable, "our own etcd servers end as soon as they are started",
               "look at " + all->directory_.string()};
}

std::vector<std::string> EtcdServers::urls() const {
  std::vector<std::string> all;
  for (const Server& server : servers_) all.push_back(server.url);
  return all;
}

std::string EtcdServers::endpoints() const { return joined(urls()); }

std::string EtcdServers::other_endpoints() const {
  std::vector<std::string> all;
  for (const Server& server : servers_) all.push_back(server.other_url.empty() ? server.url : server.other_url);
  return joined(all);
}

int EtcdServers::leader() const {
  int first = -1;
  for (int server = 0; server < size(); ++server) {
    if (!servers_[server].process) continue;
    if (first < 0) first = server;
    const auto reply = fetch_http({.base = servers_[server].url, .path = "/debug/vars", .timeout = kAnswersWithin});
    if (reply && reply->body.find("StateLeader") != std::string::npos) return server;
  }
  return first;
}

void EtcdServers::kill(int server) {
  if (servers_[server].process) servers_[server].process->signal(SIGKILL);
  servers_[server].process.reset();
}

Status EtcdServers::restart(int server) {
  kill(server);
  return start_one(servers_[server]);
}

void EtcdServers::freeze(int server) const {
  if (servers_[server].process) servers_[server].process->signal(SIGSTOP);
}

void EtcdServers::thaw(int server) const {
  if (servers_[server].process) servers_[server].process->signal(SIGCONT);
}

bool EtcdServers::answers(int server) const {
  const auto client = elastic::connect_etcd({.endpoints = {servers_[server].url}, .allow_plain_text = true});
  EVERSTEP_CHECK(client.ok(), "the URL of our own etcd is refused");
  return (*client)->transact({{}, {elastic::get("/everstep")}}, kAnswersWithin).ok();
}

void EtcdServers::kill_all() {
  for (int server = 0; server < size(); ++server) kill(server);
}

Status EtcdServers::start_all(int servers) {
  servers_.clear();
  std::error_code error;
  std::filesystem::remove_all(directory_, error);
  std::filesystem::create_directories(directory_, error);
  if (error) return Error{ErrorCode::kUnavailable, "cannot make " + directory_.string() + ": " + error.message(), ""};
  for (int server = 0; server < servers; ++server) {
    const int port = unused_port();
    const std::string name = "etcd-" + std::to_string(server);
    const std::string& other = places_.other_address;
    if (places_.last && server == servers - 1) {
      const std::string& there = places_.last->address;
      servers_.push_back({name, url_of(there, port), "", url_of(there, unused_port()), places_.last->prefix});
    } else {
      servers_.push_back({name, url_of(kLoopback, port), other.empty() ? "" : url_of(other, port),
                          url_of(places_.last ? other : kLoopback, unused_port())});
    }
  }
  for (Server& server : servers_) EVERSTEP_TRY(start_one(server));
  return {};
}

Status EtcdServers::start_one(Server& server) const {
  std::string cluster;
  for (const Server& one : servers_) {
    cluster.append(cluster.empty() ? "" : ",").append(one.name).append("=").append(one.peer_url);
  }
  auto process =
      start_etcd({"--name=" + server.name, "--data-dir=" + (directory_ / server.name).string(),
                  "--listen-client-urls=" + server.url + (server.other_url.empty() ? "" : "," + server.other_url),
                  "--advertise-client-urls=" + server.url, "--listen-peer-urls=" + server.peer_url,
                  "--initial-advertise-peer-urls=" + server.peer_url, "--initial-cluster=" + cluster, "--logger=zap",
                  "--log-outputs=stderr", "--log-level=warn"},
                 directory_ / (server.name + ".log"), server.prefix);
  if (!process) return process.error();
  server.process.emplace(std::move(*process));
  return {};
}

}  // namespace everstep::launcher::chaos
