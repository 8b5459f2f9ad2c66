#include "elastic/etcd_endpoint.h"

#include <cstdint>
#include <optional>

#include "base/text.h"

namespace everstep::elastic {
namespace {

constexpr std::string_view kPlain = "http://";
constexpr std::string_view kSecure = "https://";

// Of "host:port"; the host may be an IPv6 address in brackets.
struct Place {
  std::string_view host;
  std::string_view port;
};

std::optional<Place> place_of(std::string_view target) {
  const std::size_t colon = target.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  const Place place{target.substr(0, colon), target.substr(colon + 1)};
  const bool in_brackets = place.host.starts_with('[') && place.host.ends_with(']') && place.host.size() > 2;
  if (!in_brackets && place.host.find_first_of(":[]/@?# ") != std::string_view::npos) return std::nullopt;
  const auto port = parse_number<std::uint16_t>(place.port);
  if (!port || *port == 0) return std::nullopt;
  return place;
}

// "127.evil.example" is a name, not an address.
bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "[::1]" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos);
}

Status check_certificates(const EtcdOptions& options, bool any_secure) {
  if (options.certificate.empty() != options.key.empty()) {
    return invalid_argument("of etcd's client certificate and its key only one is given", "give both or none");
  }
  if (any_secure && options.ca.empty()) {
    return invalid_argument(
        "an etcd endpoint with https needs the certificate of the authority that signed the "
        "servers' certificates");
  }
  return {};
}

}  // namespace

Result<Endpoint> parse_endpoint(std::string_view url, bool allow_plain_text) {
  const bool secure = url.starts_with(kSecure);
  const std::string quoted = "the etcd endpoint '" + std::string(url) + "'";
  if (!secure && !url.starts_with(kPlain)) {
    return invalid_argument(quoted + " is not a URL", "write it as https://host:2379 or http://127.0.0.1:2379");
  }
  std::string_view target = url.substr(secure ? kSecure.size() : kPlain.size());
  if (target.ends_with('/')) target.remove_suffix(1);
  const auto place = place_of(target);
  if (!place) return invalid_argument(quoted + " has no host and port", "write it as https://host:2379");
  if (!secure && !allow_plain_text && !is_loopback(place->host)) {
    return invalid_argument(quoted + " would be talked to in plain text over the network",
                            "use https with certificates, or allow it with --etcd-plain-text");
  }
  return Endpoint{std::string(url), std::string(target), secure};
}

bool is_local(const Endpoint& endpoint) {
  const auto place = place_of(endpoint.target);
  return place && is_loopback(place->host);
}

Result<std::vector<Endpoint>> checked_endpoints(const EtcdOptions& options) {
  if (options.endpoints.empty()) return invalid_argument("no etcd endpoint is given");
  std::vector<Endpoint> endpoints;
  bool any_secure = false;
  for (const std::string& url : options.endpoints) {
    const Result<Endpoint> endpoint = parse_endpoint(url, options.allow_plain_text);
    if (!endpoint) return endpoint.error();
    any_secure = any_secure || endpoint->secure;
    endpoints.push_back(*endpoint);
  }
  EVERSTEP_TRY(check_certificates(options, any_secure));
  return endpoints;
}

}  // namespace everstep::elastic
