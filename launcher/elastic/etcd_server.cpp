#include "launcher/elastic/etcd_server.h"

#include <algorithm>
#include <fstream>
#include <utility>
#include <vector>

#include "elastic/etcd_client.h"
#include "launcher/elastic/etcd_process.h"

namespace everstep::launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(5);
constexpr int kTriesWithOtherPorts = 5;

std::string loopback_url(int port) { return "http://127.0.0.1:" + std::to_string(port); }

std::vector<std::string> arguments(const std::filesystem::path& directory, const std::string& clients,
                                   const std::string& peers) {
  return {"--name=everstep",
          "--data-dir=" + directory.string(),
          "--listen-client-urls=" + clients,
          "--advertise-client-urls=" + clients,
          "--listen-peer-urls=" + peers,
          "--initial-advertise-peer-urls=" + peers,
          "--initial-cluster=everstep=" + peers,
          "--auto-compaction-mode=periodic",
          "--auto-compaction-retention=10m",
          "--logger=zap",
          "--log-outputs=stderr",
          "--log-level=warn"};
}

class OwnEtcdServer final : public EtcdServer {
 public:
  OwnEtcdServer(ChildProcess process, std::string url) : process_(std::move(process)), url_(std::move(url)) {}
  ~OwnEtcdServer() override { process_.stop(kPatience); }

  const std::string& url() const override { return url_; }
  pid_t pid() const override { return process_.pid(); }
  bool is_running() override { return process_.is_running(); }

 private:
  ChildProcess process_;
  std::string url_;
};

// False: it ended, or did not answer before `limit`.
bool answers_before(EtcdServer& server, Clock::time_point limit) {
  const auto client = elastic::connect_etcd({.endpoints = {server.url()}});
  EVERSTEP_CHECK(client.ok(), "the URL of our own etcd is refused");
  constexpr auto kStep = std::chrono::milliseconds(300);
  while (server.is_running() && Clock::now() < limit) {
    if ((*client)->transact({{}, {elastic::get("/everstep")}}, kStep)) return server.is_running();
  }
  return false;
}

std::uintmax_t size_of(const std::filesystem::path& file) {
  std::error_code missing;
  const std::uintmax_t size = std::filesystem::file_size(file, missing);
  return missing ? 0 : size;
}

// The end of what this try has written.
std::string last_words(const std::filesystem::path& log, std::uintmax_t begin) {
  std::ifstream file(log);
  file.seekg(static_cast<std::streamoff>(begin));
  std::string line;
  std::string last;
  while (std::getline(file, line)) last = line;
  return last;
}

}  // namespace

Result<std::unique_ptr<EtcdServer>> EtcdServer::start(const std::filesystem::path& directory,
                                                      const std::filesystem::path& log,
                                                      std::chrono::milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
  std::string said;
  for (int tries = 0; tries < kTriesWithOtherPorts; ++tries) {
    const std::uintmax_t log_begin = size_of(log);
    const std::string clients = loopback_url(unused_port());
    auto process = start_etcd(arguments(directory, clients, loopback_url(unused_port())), log);
    if (!process) return process.error();
    auto server = std::make_unique<OwnEtcdServer>(std::move(*process), clients);
    if (answers_before(*server, end)) return std::unique_ptr<EtcdServer>(std::move(server));
    said = last_words(log, log_begin);
    // Somebody took one of the ports between our look and its start.
    if (said.find("address already in use") == std::string::npos) break;
  }
  return Error{ErrorCode::kUnavailable,
               "our own etcd on " + directory.string() + " does not come up" + (said.empty() ? "" : ": " + said),
               "look at " + log.string() + ", or start an etcd and name it with --etcd"};
}

}  // namespace everstep::launcher
