#include <chrono>
#include <string>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launcher/http/http_client.h"
#include "launcher/http/http_server.h"

namespace everstep::launcher {
namespace {

using namespace std::chrono_literals;

Route hello() {
  return {"/hello", [] { return Page{"hello\n", "text/plain"}; }};
}

std::string base_of(const HttpServer& server) { return "http://127.0.0.1:" + std::to_string(server.port()); }

TEST(ListenAddress, IsLoopbackUnlessToldOtherwise) {
  EXPECT_EQ(*parse_listen_address("9464"), (ListenAddress{"127.0.0.1", 9464}));
  EXPECT_EQ(*parse_listen_address(":9464"), (ListenAddress{"127.0.0.1", 9464}));
  EXPECT_EQ(*parse_listen_address("127.0.0.1:9464"), (ListenAddress{"127.0.0.1", 9464}));
  EXPECT_EQ(*parse_listen_address("0.0.0.0:9464"), (ListenAddress{"0.0.0.0", 9464}));
  EXPECT_EQ(*parse_listen_address("[::1]:9464"), (ListenAddress{"::1", 9464}));
  EXPECT_EQ(*parse_listen_address("node-7:0"), (ListenAddress{"node-7", 0}));
}

TEST(ListenAddress, OfAnythingElseIsRefused) {
  for (const char* text : {"", ":", "::1", "65536", "1.2.3.4", "host:", "host:http", "[::1]9464", "host:1:2"}) {
    EXPECT_FALSE(parse_listen_address(text)) << text;
  }
}

TEST(AllowedHost, OnLoopbackIsLoopbackOnly) {
  const ListenAddress loopback{"127.0.0.1", 9464};
  for (const char* host : {"localhost", "LOCALHOST:9464", "127.0.0.1:9464", "[::1]:9464"}) {
    EXPECT_TRUE(is_allowed_host(host, loopback, "node-7")) << host;
  }
  for (const char* host : {"", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "node-7", "10.0.0.1",
                           "[::1", "[::1]x", ":9464"}) {
    EXPECT_FALSE(is_allowed_host(host, loopback, "node-7")) << host;
  }
}

TEST(AllowedHost, ElsewhereIsAnAddressOrTheMachinesName) {
  const ListenAddress everywhere{"0.0.0.0", 9464};
  for (const char* host :
       {"localhost:9464", "10.0.0.7:9464", "[fe80::1]:9464", "node-7", "Node-7.cluster.local:9464"}) {
    EXPECT_TRUE(is_allowed_host(host, everywhere, "node-7")) << host;
  }
  for (const char* host : {"", "evil.example", "node-77", "10.0.0.7.evil.example", "300.0.0.1", "1.2.3", "dead.beef"}) {
    EXPECT_FALSE(is_allowed_host(host, everywhere, "node-7")) << host;
  }
  EXPECT_TRUE(is_allowed_host("metrics.intern", {"metrics.intern", 1}, "node-7"));
}

TEST(HttpServer, AnswersOnItsRouteOnly) {
  const auto server = serve_http({}, hello());
  ASSERT_TRUE(server) << server.error();
  EXPECT_EQ(fetch_http({.base = base_of(**server), .path = "/hello"})->body, "hello\n");
  EXPECT_EQ(fetch_http({.base = base_of(**server), .path = "/"})->status, 404);
  EXPECT_EQ(fetch_http({.base = base_of(**server), .path = "/hello/more"})->status, 404);
  EXPECT_EQ(fetch_http({.method = "PUT", .base = base_of(**server), .path = "/hello"})->status, 404);
}

TEST(HttpServer, RefusesForeignNames) {
  const auto server = serve_http({}, hello());
  ASSERT_TRUE(server) << server.error();
  const auto reply =
      fetch_http({.base = base_of(**server), .path = "/hello", .headers = {{"Host", "evil.example:9464"}}});
  ASSERT_TRUE(reply) << reply.error();
  EXPECT_EQ(reply->status, 403);
  EXPECT_EQ(reply->body.find("hello"), std::string::npos);
}

TEST(HttpServer, DoesNotShareItsPort) {
  const auto first = serve_http({}, hello());
  ASSERT_TRUE(first) << first.error();
  const int port = (*first)->port();
  const auto second = serve_http({"127.0.0.1", port}, hello());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(second.error().message, "cannot listen on 127.0.0.1:" + std::to_string(port) + ": Address already in use");
}

TEST(HttpServer, FreesItsPort) {
  int port = 0;
  {
    const auto first = serve_http({}, hello());
    ASSERT_TRUE(first) << first.error();
    port = (*first)->port();
    ASSERT_TRUE(fetch_http({.base = base_of(**first), .path = "/hello"}));
  }
  EXPECT_TRUE(serve_http({"127.0.0.1", port}, hello()));
}

// A connection to the server that never says anything.
class SilentClient {
 public:
  explicit SilentClient(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  SilentClient(const SilentClient&) = delete;
  SilentClient& operator=(const SilentClient&) = delete;
  ~SilentClient() { ::close(socket_); }

 private:
  int socket_;
};

TEST(HttpServer, WaitsForNoSilentClient) {
  auto server = serve_http({}, hello());
  ASSERT_TRUE(server) << server.error();
  const SilentClient first((*server)->port());
  const SilentClient second((*server)->port());
  const auto reply = fetch_http({.base = base_of(**server), .path = "/hello", .timeout = 20s});
  ASSERT_TRUE(reply) << reply.error();
  const SilentClient third((*server)->port());
  const auto start = std::chrono::steady_clock::now();
  server->reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
}

TEST(HttpClient, SaysThatNobodyAnswers) {
  int port = 0;
  {
    const auto server = serve_http({}, hello());
    ASSERT_TRUE(server) << server.error();
    port = (*server)->port();
  }
  const auto reply = fetch_http({.base = "http://127.0.0.1:" + std::to_string(port), .path = "/hello"});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kUnavailable);
}

TEST(HttpClient, TakesNoMoreThanItMust) {
  const auto server = serve_http({}, {"/large", [] { return Page{std::string(1 << 20, 'x'), "text/plain"}; }});
  ASSERT_TRUE(server) << server.error();
  const auto reply = fetch_http({.base = base_of(**server), .path = "/large"});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kUnavailable);
}

TEST(HttpClient, KnowsTheAddressOfAServer) {
  for (const char* base : {"http://169.254.169.254", "http://localhost:8080", "http://[::1]:80", "http://[::1]"}) {
    EXPECT_TRUE(check_http_base(base)) << base;
  }
  for (const char* base : {"", "169.254.169.254", "https://a", "http://", "http://a/", "http://a:0", "http://a:http",
                           "http://u@a", "http://a?b", "http://:80"}) {
    EXPECT_FALSE(check_http_base(base)) << base;
  }
}

}  // namespace
}  // namespace everstep::launcher
