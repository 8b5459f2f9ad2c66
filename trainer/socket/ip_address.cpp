#include "trainer/socket/ip_address.h"

#include <arpa/inet.h>
#include <sys/socket.h>

namespace everstep::trainer {

std::optional<IpAddress> parse_ip(const std::string& digits) {
  in_addr v4{};
  if (::inet_pton(AF_INET, digits.c_str(), &v4) == 1) return v4;
  in6_addr v6{};
  if (::inet_pton(AF_INET6, digits.c_str(), &v6) == 1) return v6;
  return std::nullopt;
}

bool is_any(const IpAddress& address) {
  if (const auto* v4 = std::get_if<in_addr>(&address)) return v4->s_addr == htonl(INADDR_ANY);
  return IN6_IS_ADDR_UNSPECIFIED(&std::get<in6_addr>(address));
}

}  // namespace everstep::trainer
