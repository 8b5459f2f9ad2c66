#include "trainer/ucx/network_device.h"

#include <fstream>
#include <memory>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

namespace everstep::trainer {

Result<std::string> device_with_address(const std::string& host) {
  in_addr wanted{};
  if (::inet_pton(AF_INET, host.c_str(), &wanted) != 1) {
    return invalid_argument("'" + host + "' is not an IPv4 address", "give it in digits: 127.0.0.1");
  }
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return Error{ErrorCode::kUnavailable, "cannot list the network devices", {}};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  for (const ifaddrs* device = list; device != nullptr; device = device->ifa_next) {
    if (device->ifa_addr == nullptr || device->ifa_addr->sa_family != AF_INET) continue;
    const auto* const address = reinterpret_cast<const sockaddr_in*>(device->ifa_addr);
    if (address->sin_addr.s_addr == wanted.s_addr) return std::string(device->ifa_name);
  }
  return invalid_argument("no network device of this machine has the address " + host,
                          "bind to an address that `ip address` shows");
}

bool may_read_other_processes() {
  int scope = 0;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;  // no such file: no such restriction
  return scope == 0;
}

}  // namespace everstep::trainer
