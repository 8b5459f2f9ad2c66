#include "tests/launcher/http/metadata_server.h"

#include <chrono>
#include <mutex>
#include <optional>
#include <thread>

#include <httplib.h>

namespace everstep::launcher {

class MetadataServer::Server {
 public:
  Server() {
    server_.Put("/latest/api/token", [this](const auto& request, auto& response) { give_token(request, response); });
    server_.Get("/latest/meta-data/spot/instance-action",
                [this](const auto& request, auto& response) { tell_action(request, response); });
    server_.Get("/computeMetadata/v1/instance/preempted",
                [this](const auto& request, auto& response) { tell_preempted(request, response); });
    server_.set_keep_alive_timeout(1);
    port = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    server_.stop();
    thread_.join();
  }

  int port = 0;
  std::mutex mutex;
  std::optional<std::string> action;
  bool preempted = false;
  int tokens = 0;
  std::string valid_token;

 private:
  void give_token(const httplib::Request& request, httplib::Response& response) {
    const std::scoped_lock lock(mutex);
    if (!request.has_header("X-aws-ec2-metadata-token-ttl-seconds")) {
      response.status = 400;
      return;
    }
    valid_token = "token-" + std::to_string(++tokens);
    response.set_content(valid_token, "text/plain");
  }

  void tell_action(const httplib::Request& request, httplib::Response& response) {
    const std::scoped_lock lock(mutex);
    if (valid_token.empty() || request.get_header_value("X-aws-ec2-metadata-token") != valid_token) {
      response.status = 401;
    } else if (!action) {
      response.status = 404;
    } else {
      response.set_content(*action, "application/json");
    }
  }

  void tell_preempted(const httplib::Request& request, httplib::Response& response) {
    const std::scoped_lock lock(mutex);
    if (request.get_header_value("Metadata-Flavor") != "Google") {
      response.status = 403;
    } else {
      response.set_content(preempted ? "TRUE" : "FALSE", "application/text");
    }
  }

  httplib::Server server_;
  std::thread thread_;
};

MetadataServer::MetadataServer() : server_(std::make_unique<Server>()) {}
MetadataServer::~MetadataServer() = default;

std::string MetadataServer::url() const { return "http://127.0.0.1:" + std::to_string(server_->port); }

void MetadataServer::set_action(const std::string& json) {
  const std::scoped_lock lock(server_->mutex);
  server_->action = json;
}

void MetadataServer::expire_tokens() {
  const std::scoped_lock lock(server_->mutex);
  server_->valid_token.clear();
}

int MetadataServer::tokens_given() const {
  const std::scoped_lock lock(server_->mutex);
  return server_->tokens;
}

void MetadataServer::set_preempted(bool preempted) {
  const std::scoped_lock lock(server_->mutex);
  server_->preempted = preempted;
}

}  // namespace everstep::launcher
