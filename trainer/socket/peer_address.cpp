#include "trainer/socket/peer_address.h"

#include "base/text.h"
#include "trainer/socket/ip_address.h"

namespace everstep::trainer {
namespace {

constexpr std::string_view kUnixMark = "unix=";

std::optional<TcpAddress> parse_tcp(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const TcpAddress address{std::string(host), parse_number<std::uint16_t>(text.substr(colon + 1)).value_or(0)};
  if (address.port == 0 || !parse_ip(address.host) || to_text(address) != text) return std::nullopt;
  return address;
}

std::optional<UnixAddress> parse_unix(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash == 0) return std::nullopt;
  return UnixAddress{std::string(text.substr(0, slash)), std::string(text.substr(slash))};
}

}  // namespace

std::string to_text(const TcpAddress& address) {
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return (is_v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

std::string to_text(const PeerAddress& address) {
  std::string text = address.tcp ? to_text(*address.tcp) : "";
  if (!address.local) return text;
  return text + (text.empty() ? "" : " ") + std::string(kUnixMark) + address.local->boot + address.local->path;
}

Result<PeerAddress> parse_peer_address(std::string_view text) {
  PeerAddress address;
  const std::size_t mark = text.find(kUnixMark);
  if (mark != std::string_view::npos) address.local = parse_unix(text.substr(mark + kUnixMark.size()));
  const std::string_view front = mark == std::string_view::npos ? text : text.substr(0, mark);
  address.tcp = parse_tcp(trimmed(front));
  if ((address.tcp || address.local) && to_text(address) == text) return address;
  return invalid_argument("'" + std::string(text) + "' is not the address of a worker", "such as 10.0.0.7:4711");
}

std::string shown_address(const std::string& text) {
  const Result<PeerAddress> address = parse_peer_address(text);
  if (!address) return text;
  return address->tcp ? to_text(*address->tcp) : "this host only";
}

}  // namespace everstep::trainer
