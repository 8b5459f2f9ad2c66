#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "launcher/http/http_server.h"

namespace everstep::launcher {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// "[::1]:9464" and "name:9464" as host and what stands behind the colon, if there is one.
struct HostAndPort {
  std::string_view host;
  std::optional<std::string_view> port;
};

std::optional<HostAndPort> split(std::string_view text) {
  const bool in_brackets = text.starts_with('[');
  const std::size_t end = in_brackets ? text.find(']') : std::min(text.find(':'), text.size());
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view host = in_brackets ? text.substr(1, end - 1) : text.substr(0, end);
  const std::string_view rest = text.substr(end + (in_brackets ? 1 : 0));
  if (rest.empty()) return HostAndPort{host, std::nullopt};
  if (rest.front() != ':') return std::nullopt;
  return HostAndPort{host, rest.substr(1)};
}

bool is_ipv4(std::string_view host) {
  int parts = 0;
  while (true) {
    const std::size_t dot = std::min(host.find('.'), host.size());
    const auto number = parse_number<int>(host.substr(0, dot));
    if (!number || *number < 0 || *number > 255) return false;
    ++parts;
    if (dot == host.size()) return parts == 4;
    host.remove_prefix(dot + 1);
  }
}

bool is_ipv6(std::string_view host) {
  return host.find(':') != std::string_view::npos &&
         host.find_first_not_of("0123456789abcdef:.") == std::string_view::npos;
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || (is_ipv4(host) && host.starts_with("127."));
}

}  // namespace

Result<ListenAddress> parse_listen_address(std::string_view text) {
  const auto refuse = [&] {
    return invalid_argument("'" + std::string(text) + "' is no address to listen on",
                            "write a port, which only this machine can reach, or HOST:PORT");
  };
  const bool is_port_alone = text.find_first_not_of("0123456789") == std::string_view::npos;
  const auto parts = is_port_alone ? HostAndPort{"", text} : split(text);
  if (!parts || !parts->port) return refuse();
  const auto port = parse_number<int>(*parts->port);
  if (!port || *port < 0 || *port > 65535) return refuse();
  ListenAddress address;
  if (!parts->host.empty()) address.host = parts->host;
  address.port = *port;
  return address;
}

bool is_allowed_host(std::string_view header, const ListenAddress& listen, std::string_view machine) {
  const std::string text = lower(header);
  const auto parts = split(text);
  if (!parts || parts->host.empty()) return false;
  const std::string_view host = parts->host;
  if (is_loopback(host)) return true;
  if (is_loopback(listen.host)) return false;
  const std::string name = lower(machine);
  return is_ipv4(host) || is_ipv6(host) || host == lower(listen.host) || host == name || host.starts_with(name + ".");
}

}  // namespace everstep::launcher
