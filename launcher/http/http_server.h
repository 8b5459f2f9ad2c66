#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace everstep::launcher {

// Where a server listens.
struct ListenAddress {
  std::string host = "127.0.0.1";  // a name, an IPv4 address, or an IPv6 address without brackets
  int port = 0;                    // 0: any free one

  bool operator==(const ListenAddress&) const = default;
};

// "9464", ":9464", "127.0.0.1:9464", "0.0.0.0:9464", "[::1]:9464". Without a host: loopback.
Result<ListenAddress> parse_listen_address(std::string_view text);

// Whether to answer a request with that Host header. A page in a browser can name this server under a name of its
// own (DNS rebinding); what it cannot do is ask for an address, for "localhost", or for the name of this machine, with
// or without a domain behind it. A loopback server answers to loopback names only.
bool is_allowed_host(std::string_view header, const ListenAddress& listen, std::string_view machine);

struct Page {
  std::string body;
  std::string content_type;
};

// A page for a path; called by threads of the server, one at a time.
struct Route {
  std::string path;
  std::function<Page()> page;
};

// Answers GET until it goes.
class HttpServer {
 public:
  virtual ~HttpServer() = default;

  virtual int port() const = 0;
};

Result<std::unique_ptr<HttpServer>> serve_http(const ListenAddress& listen, Route route);

}  // namespace everstep::launcher
