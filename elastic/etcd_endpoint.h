#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "elastic/etcd_client.h"

namespace everstep::elastic {

struct Endpoint {
  std::string url;
  std::string target;  // "host:port"
  bool secure = false;

  bool operator==(const Endpoint&) const = default;
};

// From "http://host:port" or "https://host:port". Plain text to another machine only if that is allowed.
Result<Endpoint> parse_endpoint(std::string_view url, bool allow_plain_text);

// Whether it is on this machine, as far as its address tells.
bool is_local(const Endpoint& endpoint);

// All endpoints, if they and the certificates make sense together.
Result<std::vector<Endpoint>> checked_endpoints(const EtcdOptions& options);

}  // namespace everstep::elastic
