#include "launcher/http/http_server.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

namespace everstep::launcher {
namespace {

constexpr std::size_t kThreads = 2;
constexpr std::time_t kPatienceSeconds = 1;  // with a client that sends nothing
constexpr std::chrono::seconds kLongestEnd{2};

std::string machine_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

// Outlives its owner while a client keeps one of the server's threads: nobody waits longer for that than kLongestEnd.
class Serving {
 public:
  Serving(ListenAddress listen, Route route) : listen_(std::move(listen)), page_(std::move(route.page)) {
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };  // the server deletes it
    // The library's own choice, SO_REUSEPORT, would let two processes share a port.
    server_.set_socket_options([](int socket) {
      const int on = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    });
    server_.set_keep_alive_timeout(kPatienceSeconds);
    server_.set_read_timeout(kPatienceSeconds);
    server_.set_write_timeout(kPatienceSeconds);
    server_.set_payload_max_length(1024);
    server_.set_pre_routing_handler([this](const auto& request, auto& response) { return admit(request, response); });
    server_.Get(route.path, [this](const auto&, auto& response) { answer(response); });
  }

  Result<int> bind() {
    errno = 0;
    const int port = listen_.port == 0                                  ? server_.bind_to_any_port(listen_.host)
                     : server_.bind_to_port(listen_.host, listen_.port) ? listen_.port
                                                                        : -1;
    if (port > 0) return port;
    const std::string why = errno == 0 ? "not possible" : std::generic_category().message(errno);
    return invalid_argument("cannot listen on " + listen_.host + ":" + std::to_string(listen_.port) + ": " + why,
                            "choose another port, or 0 for any free one");
  }

  void run() {
    server_.listen_after_bind();
    const std::scoped_lock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  // stop() before that would be lost.
  void await_start() {
    while (!server_.is_running() && !has_ended()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  void stop() {
    server_.stop();
    std::unique_lock lock(mutex_);
    page_ = nullptr;
    changed_.wait_for(lock, kLongestEnd, [this] { return ended_; });
  }

 private:
  httplib::Server::HandlerResponse admit(const httplib::Request& request, httplib::Response& response) const {
    if (is_allowed_host(request.get_header_value("Host"), listen_, machine_)) {
      return httplib::Server::HandlerResponse::Unhandled;
    }
    response.status = 403;
    response.set_content("this server does not go by that name\n", "text/plain");
    return httplib::Server::HandlerResponse::Handled;
  }

  bool has_ended() {
    const std::scoped_lock lock(mutex_);
    return ended_;
  }

  void answer(httplib::Response& response) {
    const std::scoped_lock lock(mutex_);
    if (!page_) return;
    const Page page = page_();
    response.set_content(page.body, page.content_type);
  }

  const ListenAddress listen_;
  const std::string machine_ = machine_name();
  httplib::Server server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<Page()> page_;
  bool ended_ = false;
};

class HttplibServer final : public HttpServer {
 public:
  HttplibServer(std::shared_ptr<Serving> serving, int port) : serving_(std::move(serving)), port_(port) {
    std::thread([kept = serving_] { kept->run(); }).detach();
    serving_->await_start();
  }
  HttplibServer(const HttplibServer&) = delete;
  HttplibServer& operator=(const HttplibServer&) = delete;
  ~HttplibServer() override { serving_->stop(); }

  int port() const override { return port_; }

 private:
  std::shared_ptr<Serving> serving_;
  int port_;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> serve_http(const ListenAddress& listen, Route route) {
  auto serving = std::make_shared<Serving>(listen, std::move(route));
  const auto port = serving->bind();
  if (!port) return port.error();
  return std::unique_ptr<HttpServer>(std::make_unique<HttplibServer>(std::move(serving), *port));
}

}  // namespace everstep::launcher
