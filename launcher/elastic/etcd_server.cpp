#include "launcher/elastic/etcd_server.h"

#include <algorithm>
#include <fstream>
#include <utility>
#include <vector>

#include "elastic/etcd_client.h"
#include "launcher/elastic/etcd_certificates.h"
#include "launcher/elastic/etcd_process.h"

namespace everstep::launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(5);
constexpr int kTriesWithOtherPorts = 5;

std::string loopback_url(int port) { return "https://127.0.0.1:" + std::to_string(port); }

std::vector<std::string> arguments(const std::filesystem::path& directory, const EtcdCertificates& certificates,
                                   const std::string& clients, const std::string& peers) {
  std::vector<std::string> all{"--name=everstep",
                               "--data-dir=" + (directory / "data").string(),
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
  for (std::string& argument : certificates.server_arguments()) all.push_back(std::move(argument));
  return all;
}

EtcdAddress address_of(const std::string& url, const EtcdCertificates& certificates) {
  return {.kind = EtcdAddress::Kind::kServers,
          .urls = {url},
          .ca_path = certificates.ca(),
          .certificate_path = certificates.client_certificate(),
          .key_path = certificates.client_key()};
}

class OwnEtcdServer final : public EtcdServer {
 public:
  OwnEtcdServer(ChildProcess process, EtcdAddress address)
      : process_(std::move(process)), address_(std::move(address)) {}
  ~OwnEtcdServer() override { process_.stop(kPatience); }

  const EtcdAddress& address() const override { return address_; }
  pid_t pid() const override { return process_.pid(); }
  bool is_running() override { return process_.is_running(); }

 private:
  ChildProcess process_;
  EtcdAddress address_;
};

// False: it ended, or did not answer before `limit`.
bool answers_before(EtcdServer& server, const elastic::EtcdOptions& options, Clock::time_point limit) {
  const auto client = elastic::connect_etcd(options);
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

Error does_not_come_up(const std::filesystem::path& directory, const std::filesystem::path& log,
                       const std::string& why) {
  return {ErrorCode::kUnavailable,
          "our own etcd on " + directory.string() + " does not come up" + (why.empty() ? "" : ": " + why),
          "look at " + log.string() + ", or start an etcd and name it with --etcd"};
}

}  // namespace

Result<std::unique_ptr<EtcdServer>> EtcdServer::start(const std::filesystem::path& directory,
                                                      const std::filesystem::path& log,
                                                      std::chrono::milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
  const auto certificates = EtcdCertificates::of(directory);
  if (!certificates) return does_not_come_up(directory, log, certificates.error().message);
  std::string said;
  for (int tries = 0; tries < kTriesWithOtherPorts; ++tries) {
    const std::uintmax_t log_begin = size_of(log);
    const std::string clients = loopback_url(unused_port());
    const auto client = certificates->client_options(clients);
    if (!client) return does_not_come_up(directory, log, client.error().message);
    auto process = start_etcd(arguments(directory, *certificates, clients, loopback_url(unused_port())), log);
    if (!process) return process.error();
    auto server = std::make_unique<OwnEtcdServer>(std::move(*process), address_of(clients, *certificates));
    if (answers_before(*server, *client, end)) return std::unique_ptr<EtcdServer>(std::move(server));
    said = last_words(log, log_begin);
    // Somebody took one of the ports between our look and its start.
    if (said.find("address already in use") == std::string::npos) break;
  }
  return does_not_come_up(directory, log, said);
}

}  // namespace everstep::launcher
