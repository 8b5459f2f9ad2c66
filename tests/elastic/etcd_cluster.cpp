#include "tests/elastic/etcd_cluster.h"

#include <csignal>
#include <fstream>
#include <sstream>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "launcher/supervise/etcd_process.h"

namespace everstep::elastic {
namespace {

constexpr auto kHealthyWithin = std::chrono::seconds(40);  // the machine may be busy

int port_of(const std::string& url) { return parse_number<int>(url.substr(url.rfind(':') + 1)).value_or(0); }

std::string content(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string answer_to(int port, const std::string& request) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::send(socket, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size())) {
    char buffer[4096];
    for (ssize_t got = 0; (got = ::recv(socket, buffer, sizeof buffer, 0)) > 0;) answer.append(buffer, got);
  }
  ::close(socket);
  return answer;
}

}  // namespace

EtcdCluster::EtcdCluster(int servers, std::optional<ServerCertificates> certificates,
                         std::vector<std::string> more_arguments, std::string address)
    : certificates_(std::move(certificates)), more_arguments_(std::move(more_arguments)), address_(std::move(address)) {
  bool is_up = false;
  for (int tries = 0; tries < 3 && !is_up; ++tries) is_up = try_to_start(servers);
  EVERSTEP_CHECK(is_up, "etcd does not come up");
  wait_until_healthy();
}

std::vector<std::string> EtcdCluster::endpoints() const {
  std::vector<std::string> urls;
  for (const Server& server : servers_) urls.push_back(server.url);
  return urls;
}

std::unique_ptr<KvStore> EtcdCluster::connect() const {
  auto store = connect_etcd({.endpoints = endpoints(), .allow_plain_text = true});
  EVERSTEP_CHECK(store.ok(), store.error().line());
  return std::move(*store);
}

void EtcdCluster::kill(int server) {
  if (servers_[server].process) servers_[server].process->signal(SIGKILL);
  servers_[server].process.reset();
}

void EtcdCluster::freeze(int server) const {
  servers_[server].process->signal(SIGSTOP);
  siginfo_t stopped{};
  ::waitid(P_PID, static_cast<id_t>(servers_[server].process->pid()), &stopped, WSTOPPED | WNOWAIT);
}

void EtcdCluster::thaw(int server) const { servers_[server].process->signal(SIGCONT); }

void EtcdCluster::restart(int server) {
  kill(server);
  start(servers_[server]);
}

void EtcdCluster::wipe(int server) {
  kill(server);
  std::filesystem::remove_all(directory_.path() / servers_[server].name);
}

void EtcdCluster::keep_copy(int server) {
  kill(server);
  const auto data = directory_.path() / servers_[server].name;
  std::filesystem::copy(data, data.string() + ".copy", std::filesystem::copy_options::recursive);
}

void EtcdCluster::restore_copy(int server) {
  wipe(server);
  const auto data = directory_.path() / servers_[server].name;
  std::filesystem::copy(data.string() + ".copy", data, std::filesystem::copy_options::recursive);
}

void EtcdCluster::wait_until_healthy() const {
  EtcdOptions options{.endpoints = endpoints(), .allow_plain_text = true};
  if (certificates_) {
    options.ca = content(certificates_->ca);
    options.certificate = content(certificates_->certificate);
    options.key = content(certificates_->key);
  }
  for (const std::string& url : endpoints()) {
    options.endpoints = {url};
    const auto store = connect_etcd(options);
    EVERSTEP_CHECK(store.ok(), "cannot talk to " + url);
    const auto answers = [&] { return (*store)->transact({{}, {remove("nothing")}}, std::chrono::seconds(1)).ok(); };
    EVERSTEP_CHECK(becomes_true(answers, kHealthyWithin), "etcd at " + url + " does not answer");
  }
}

int EtcdCluster::leader(int server) const {
  std::vector<std::uint64_t> members;
  for (int index = 0; index < size(); ++index) {
    const std::string status = servers_[index].process ? ask(index, "/v3/maintenance/status", "{}") : "";
    members.push_back(number_in(status, "member_id"));
  }
  const std::uint64_t leader = number_in(ask(server, "/v3/maintenance/status", "{}"), "leader");
  for (int index = 0; index < size(); ++index) {
    if (leader != 0 && members[index] == leader) return index;
  }
  return -1;
}

void EtcdCluster::compact(int server) const {
  const std::uint64_t now = number_in(ask(server, "/v3/maintenance/status", "{}"), "revision");
  const std::string body = R"({"revision": ")" + std::to_string(now) + R"(", "physical": true})";
  ask(server, "/v3/kv/compaction", body);
}

void EtcdCluster::make_room(int server) const {
  compact(server);
  ask(server, "/v3/maintenance/defragment", "{}");
  const std::uint64_t member = number_in(ask(server, "/v3/maintenance/status", "{}"), "member_id");
  ask(server, "/v3/maintenance/alarm",
      R"({"action": "DEACTIVATE", "alarm": "NOSPACE", "memberID": ")" + std::to_string(member) + R"("})");
}

bool EtcdCluster::try_to_start(int servers) {
  servers_.clear();
  const std::string scheme = certificates_ ? "https" : "http";
  for (int index = 0; index < servers; ++index) {
    const std::string name = "server" + std::to_string(index);
    std::filesystem::remove_all(directory_.path() / name);
    servers_.push_back({name, scheme + "://" + address_ + ":" + std::to_string(launcher::unused_port()),
                        "http://127.0.0.1:" + std::to_string(launcher::unused_port())});
  }
  for (Server& server : servers_) start(server);
  // One that finds a port taken ends at once.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  bool all_run = true;
  for (Server& server : servers_) all_run = all_run && server.process->is_running();
  return all_run;
}

void EtcdCluster::start(Server& server) const {
  std::string cluster;
  for (const Server& one : servers_) cluster += (cluster.empty() ? "" : ",") + one.name + "=" + one.peer_url;
  std::vector<std::string> args = {"--name=" + server.name,
                                   "--data-dir=" + directory_.file(server.name),
                                   "--listen-client-urls=" + server.url,
                                   "--advertise-client-urls=" + server.url,
                                   "--listen-peer-urls=" + server.peer_url,
                                   "--initial-advertise-peer-urls=" + server.peer_url,
                                   "--initial-cluster=" + cluster,
                                   "--logger=zap",
                                   "--log-outputs=stderr",
                                   "--log-level=warn"};
  if (certificates_) {
    args.insert(args.end(), {"--client-cert-auth", "--trusted-ca-file=" + certificates_->ca,
                             "--cert-file=" + certificates_->certificate, "--key-file=" + certificates_->key});
  }
  args.insert(args.end(), more_arguments_.begin(), more_arguments_.end());
  auto process = launcher::start_etcd(args, directory_.path() / (server.name + ".log"));
  EVERSTEP_CHECK(process.ok(), process.error().line());
  server.process.emplace(std::move(*process));
}

// etcd answers JSON to those that do not speak gRPC.
std::string EtcdCluster::ask(int server, const std::string& path, const std::string& body) const {
  return answer_to(port_of(endpoint(server)),
                   "POST " + path + " HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
}

// Of "field":"123"; 0 if it is not there.
std::uint64_t EtcdCluster::number_in(const std::string& answer, const std::string& field) const {
  const std::string begin = "\"" + field + "\":\"";
  const std::size_t at = answer.find(begin);
  if (at == std::string::npos) return 0;
  const std::size_t first = at + begin.size();
  return parse_number<std::uint64_t>(answer.substr(first, answer.find('"', first) - first)).value_or(0);
}

}  // namespace everstep::elastic
