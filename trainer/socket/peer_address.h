#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace everstep::trainer {

// A port of a host, as peers on other hosts call it.
struct TcpAddress {
  std::string host;  // an IPv4 or IPv6 address in digits
  std::uint16_t port = 0;

  bool operator==(const TcpAddress&) const = default;
};

// A socket in the file system of one host.
struct UnixAddress {
  std::string boot;  // which boot of which host
  std::string path;

  bool operator==(const UnixAddress&) const = default;
};

// The ways to call a worker: at least one.
struct PeerAddress {
  std::optional<TcpAddress> tcp{};
  std::optional<UnixAddress> local{};

  bool operator==(const PeerAddress&) const = default;
};

// "10.0.0.7:4711", "[fd00::7]:4711"
std::string to_text(const TcpAddress& address);

// "10.0.0.7:4711 unix=BOOT/run/7.sock", or one of the two alone.
std::string to_text(const PeerAddress& address);

// kInvalidArgument for anything that to_text does not write.
Result<PeerAddress> parse_peer_address(std::string_view text);

// For people: "10.0.0.7:4711", or "this host only" if there is no port. Any other text as it is.
std::string shown_address(const std::string& text);

}  // namespace everstep::trainer
