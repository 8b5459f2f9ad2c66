#pragma once

#include <chrono>
#include <map>
#include <string>

#include "base/result.h"

namespace everstep::launcher {

struct HttpRequest {
  std::string method = "GET";  // or "PUT", with an empty body
  std::string base;            // "http://169.254.169.254"
  std::string path;            // "/latest/api/token"
  std::map<std::string, std::string> headers{};
  std::chrono::milliseconds timeout{1000};  // for connecting, and for each part of the answer
};

struct HttpReply {
  int status = 0;
  std::string body;
};

// "http://HOST[:PORT]" and nothing behind it; kInvalidArgument for anything else.
Status check_http_base(const std::string& base);

// One request on a connection of its own, without following redirects. Any status is a reply; kUnavailable if there is
// none, or one of more than 64 KiB.
Result<HttpReply> fetch_http(const HttpRequest& request);

}  // namespace everstep::launcher
