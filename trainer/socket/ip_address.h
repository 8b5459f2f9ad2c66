#pragma once

#include <optional>
#include <string>
#include <variant>

#include <netinet/in.h>

namespace everstep::trainer {

using IpAddress = std::variant<in_addr, in6_addr>;

// "10.0.0.7" or "fd00::7"; nothing for any other text.
std::optional<IpAddress> parse_ip(const std::string& digits);

// Whether it stands for all addresses of a host, however it is written: 0.0.0.0, ::, ::0.
bool is_any(const IpAddress& address);

}  // namespace everstep::trainer
