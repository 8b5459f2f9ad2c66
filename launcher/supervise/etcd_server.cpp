#include "launcher/supervise/etcd_server.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "elastic/etcd_client.h"
#include "launcher/supervise/etcd_certificates.h"
#include "launcher/supervise/etcd_process.h"

namespace everstep::launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kEtcdEndsWithin = std::chrono::seconds(5);
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

std::uintmax_t size_of(const std::filesystem::path& file) {
  std::error_code missing;
  const std::uintmax_t size = std::filesystem::file_size(file, missing);
  return missing ? 0 : size;
}

class OwnEtcdServer final : public EtcdServer {
 public:
  OwnEtcdServer(EtcdAddress address, elastic::EtcdOptions options, std::vector<std::string> args,
                std::filesystem::path log)
      : address_(std::move(address)), options_(std::move(options)), args_(std::move(args)), log_(std::move(log)) {}
  ~OwnEtcdServer() override {
    if (process_) process_->stop(kEtcdEndsWithin);
  }

  const EtcdAddress& address() const override { return address_; }
  pid_t pid() const override { return process_->pid(); }
  bool is_running() override { return process_->is_running(); }
  std::optional<int> wait_status() const override { return process_->wait_status(); }

  bool answers(std::chrono::milliseconds limit) override {
    if (!client_) {
      auto client = elastic::connect_etcd(options_);
      EVERSTEP_CHECK(client.ok(), "the URL of our own etcd is refused");
      client_ = std::move(client).value();
    }
    return client_->transact({{}, {elastic::get("/everstep")}}, limit).ok();
  }

  Status start_again() override {
    log_begin_ = size_of(log_);
    auto process = start_etcd(args_, log_);
    if (!process) return process.error();
    process_.emplace(std::move(*process));
    return {};
  }

  std::string last_words() const override {
    std::ifstream file(log_);
    file.seekg(static_cast<std::streamoff>(log_begin_));
    return last_words_of_etcd(std::string(std::istreambuf_iterator<char>(file), {}));
  }

 private:
  const EtcdAddress address_;
  const elastic::EtcdOptions options_;
  const std::vector<std::string> args_;
  const std::filesystem::path log_;
  std::uintmax_t log_begin_ = 0;
  std::optional<ChildProcess> process_;
  std::unique_ptr<elastic::KvStore> client_;
};

// False: it ended, or did not answer before `limit`.
bool answers_before(EtcdServer& server, Clock::time_point limit) {
  constexpr std::chrono::milliseconds kStep{300};
  while (server.is_running() && Clock::now() < limit) {
    if (server.answers(kStep)) return server.is_running();
  }
  return false;
}

// The value of a text in a line of JSON as etcd logs it; empty: there is none.
std::string text_in(std::string_view line, std::string_view name) {
  const std::string begin = "\"" + std::string(name) + "\":\"";
  const std::size_t at = line.find(begin);
  if (at == std::string_view::npos) return {};
  std::string text;
  for (std::size_t i = at + begin.size(); i < line.size() && line[i] != '"'; ++i) {
    if (line[i] == '\\') ++i;
    if (i < line.size()) text += line[i];
  }
  return text;
}

// Not in JSON: what the Go runtime says.
std::string in_plain_words(std::string_view line) {
  const std::string said = text_in(line, "msg");
  if (said.empty()) return std::string(line);
  const std::string error = text_in(line, "error");
  return error.empty() ? said : said + ": " + error;
}

Error does_not_come_up(const std::filesystem::path& directory, const std::filesystem::path& log,
                       const std::string& why) {
  return {ErrorCode::kUnavailable,
          "our own etcd on " + directory.string() + " does not come up" + (why.empty() ? "" : ": " + why),
          "look at " + log.string() + ", or start an etcd and name it with --etcd"};
}

}  // namespace

std::string last_words_of_etcd(std::string_view log) {
  std::string_view last;
  std::string_view fatal;
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(log.size(), line.size() + 1));
    if (line.empty()) continue;
    last = line;
    const std::string level = text_in(line, "level");
    if (level == "fatal" || level == "panic") fatal = line;
  }
  return in_plain_words(fatal.empty() ? last : fatal);
}

Result<std::unique_ptr<EtcdServer>> EtcdServer::start(const std::filesystem::path& directory,
                                                      const std::filesystem::path& log,
                                                      std::chrono::milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
  const auto certificates = EtcdCertificates::of(directory);
  if (!certificates) return does_not_come_up(directory, log, certificates.error().message);
  std::string said;
  for (int tries = 0; tries < kTriesWithOtherPorts; ++tries) {
    const std::string clients = loopback_url(unused_port());
    const auto client = certificates->client_options(clients);
    if (!client) return does_not_come_up(directory, log, client.error().message);
    auto server =
        std::make_unique<OwnEtcdServer>(address_of(clients, *certificates), *client,
                                        arguments(directory, *certificates, clients, loopback_url(unused_port())), log);
    EVERSTEP_TRY(server->start_again());
    if (answers_before(*server, end)) return std::unique_ptr<EtcdServer>(std::move(server));
    said = server->last_words();
    // Somebody took one of the ports between our look and its start.
    if (said.find("address already in use") == std::string::npos) break;
  }
  return does_not_come_up(directory, log, said);
}

}  // namespace everstep::launcher
