#include "launcher/job/device_environment.h"

#include <cstring>
#include <memory>
#include <optional>

#include <ifaddrs.h>
#include <sys/socket.h>

#include "launcher/cli/values.h"
#include "launcher/job/device_options.h"
#include "trainer/socket/ip_address.h"

namespace everstep::launcher {
namespace {

bool has_address(const ifaddrs& interface, const trainer::IpAddress& wanted) {
  if (interface.ifa_addr == nullptr) return false;
  if (const auto* v4 = std::get_if<in_addr>(&wanted)) {
    if (interface.ifa_addr->sa_family != AF_INET) return false;
    sockaddr_in found{};
    std::memcpy(&found, interface.ifa_addr, sizeof found);
    return found.sin_addr.s_addr == v4->s_addr;
  }
  if (interface.ifa_addr->sa_family != AF_INET6) return false;
  sockaddr_in6 found{};
  std::memcpy(&found, interface.ifa_addr, sizeof found);
  return std::memcmp(&found.sin6_addr, &std::get<in6_addr>(wanted), sizeof(in6_addr)) == 0;
}

// Nothing: no interface of this host has it.
std::optional<std::string> interface_of(const std::string& address) {
  const auto wanted = trainer::parse_ip(address);
  ifaddrs* first = nullptr;
  if (!wanted || trainer::is_any(*wanted) || ::getifaddrs(&first) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(first, ::freeifaddrs);
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    if (has_address(*each, *wanted)) return each->ifa_name;
  }
  return std::nullopt;
}

}  // namespace

DeviceVariables device_variables(const std::string& kind, const std::string& transport, const WireOptions& wire) {
  if (kind != "cuda") return {};
  DeviceVariables variables{
      {"CUBLAS_WORKSPACE_CONFIG", ":4096:8"},  // sums of one order, whatever else runs
      {"CUDA_DEVICE_MAX_CONNECTIONS", "32"},   // hardware queues: streams that do not wait for each other
      {"CUDA_MODULE_LOADING", "EAGER"},        // loading a kernel later would stop the device
  };
  if (transport == kHostTransport) return variables;
  auto interface = interface_of(wire.bind);
  if (!interface) interface = interface_of(wire.advertise);
  if (interface) variables.emplace_back("NCCL_SOCKET_IFNAME", "=" + *interface);  // that one and no other
  return variables;
}

std::vector<std::string> device_variable_lines(const Config& config, const std::string& kind) {
  Values values(config);
  Outcome failure;
  const WireOptions wire = read_wire_options(config, values, failure);
  std::string transport;
  if (failure || read_transport(config, transport)) return {};
  std::vector<std::string> lines;
  for (const auto& [name, value] : device_variables(kind, transport, wire)) {
    lines.push_back(std::string("workers have ").append(name).append("=").append(value).append(", unless it is set"));
  }
  return lines;
}

}  // namespace everstep::launcher
