#include "launcher/job/wire_options.h"

#include <string_view>

#include "base/text.h"
#include "launcher/cli/files.h"
#include "launcher/job/job_secret.h"
#include "trainer/socket/ip_address.h"

namespace everstep::launcher {
namespace {

constexpr int kHighestPort = 65535;
constexpr std::size_t kLargestTlsPem = std::size_t{1} << 20;

std::optional<std::pair<int, int>> parse_port_range(std::string_view text) {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = parse_number<int>(text.substr(0, dash));
  const auto last = parse_number<int>(text.substr(dash + 1));
  if (!first || !last || *first < 1 || *last < *first || *last > kHighestPort) return std::nullopt;
  return std::pair(*first, *last);
}

void check_addresses(const Config& config, const WireOptions& wire, Outcome& failure) {
  constexpr const char* kHint = "give an IP address in digits: 10.0.0.7 or fd00::7";
  const auto bind = trainer::parse_ip(wire.bind);
  const auto advertise = trainer::parse_ip(wire.advertise);
  if (!bind) {
    failure = config.reject("bind", "is no IP address", kHint);
  } else if (trainer::is_any(*bind) && wire.advertise.empty()) {
    failure = config.reject("bind", "is all addresses of this host, and peers need to know one of them",
                            "add --advertise=ADDRESS, the one that they reach");
  } else if (!wire.advertise.empty() && (!advertise || trainer::is_any(*advertise))) {
    failure = config.reject("advertise", "is no IP address that peers can call", kHint);
  }
}

void read_certificates(const Config& config, Values& values, WireOptions& wire, Outcome& failure) {
  wire.tls_ca = read_pem_path(config, values, "tls-ca", failure);
  wire.tls_cert = read_pem_path(config, values, "tls-cert", failure);
  wire.tls_key = read_pem_path(config, values, "tls-key", failure);
  if (failure) return;
  for (const char* given : {"tls-ca", "tls-cert", "tls-key"}) {
    for (const char* missing : {"tls-ca", "tls-cert", "tls-key"}) {
      if (failure || !config.is_set(given) || config.is_set(missing)) continue;
      failure = config.reject(given, "an authority, a certificate and its key go together",
                              "add --" + std::string(missing) + "=FILE");
    }
  }
}

// What only makes sense for connections with other hosts.
std::optional<std::string> first_for_other_hosts(const Config& config, const WireOptions& wire) {
  for (const OptionSpec& option : wire_options()) {
    if (option.name != "wire" && config.is_set(option.name)) return option.name;
  }
  return wire.tcp_only ? std::optional<std::string>("wire") : std::nullopt;
}

}  // namespace

std::vector<OptionSpec> wire_options() {
  return {
      {.name = "bind",
       .value_name = "ADDRESS",
       .help = "Where workers listen for those of other hosts, 0.0.0.0 and :: for all addresses; if not set, 127.0.0.1 "
               "where there is a secret, and nowhere else",
       .side = OptionSide::kHost,
       .on_resume = OnResume::kAnew},
      {.name = "advertise",
       .value_name = "ADDRESS",
       .help = "Where peers reach the workers of this host; if not set, where they listen",
       .side = OptionSide::kHost,
       .on_resume = OnResume::kAnew},
      {.name = "port-range",
       .value_name = "A-B",
       .help = "Ports to listen on, one per worker; if not set, any free one",
       .side = OptionSide::kHost,
       .on_resume = OnResume::kAnew},
      {.name = "wire",
       .value_name = "KIND",
       .default_text = "auto",
       .help = "auto: workers of one host talk over local sockets, others over TLS; tcp: all over TLS",
       .side = OptionSide::kHost,
       .on_resume = OnResume::kAnew},
      {.name = "tls-ca",
       .value_name = "FILE",
       .help = "Who signed the certificates of all workers (PEM): they prove who they are, in addition to the secret",
       .is_path = true,
       .side = OptionSide::kHost,
       .on_resume = OnResume::kAnew},
      {.name = "tls-cert",
       .value_name = "FILE",
       .help = "The certificate of this host's workers (PEM)",
       .is_path = true,
       .side = OptionSide::kHost,
       .on_resume = OnResume::kAnew},
      {.name = "tls-key",
       .value_name = "FILE",
       .help = "The key of --tls-cert (PEM)",
       .is_path = true,
       .side = OptionSide::kHost,
       .on_resume = OnResume::kAnew},
  };
}

WireOptions read_wire_options(const Config& config, Values& values, Outcome& failure) {
  WireOptions wire;
  if (config.is_set("bind")) wire.bind = values.path("bind");
  if (config.is_set("advertise")) wire.advertise = values.path("advertise");
  const std::string ports = config.is_set("port-range") ? values.path("port-range") : "";
  wire.tcp_only = values.choice("wire", {"auto", "tcp"}) == 1;
  if (!failure) failure = values.failure();
  if (!failure) check_addresses(config, wire, failure);
  if (failure) return wire;
  if (!ports.empty()) {
    wire.port_range = parse_port_range(ports);
    if (!wire.port_range) failure = config.reject("port-range", "expected two ports", "--port-range=4700-4799");
  }
  read_certificates(config, values, wire, failure);
  if (failure || config.is_set("secret-file")) return wire;
  if (const auto name = first_for_other_hosts(config, wire)) {
    failure = config.reject(*name, "needs a secret: without one workers talk within one host only, and not over TCP",
                            std::string("make one: ") + kMakeSecret);
  }
  return wire;
}

std::string read_pem_path(const Config& config, Values& values, const std::string& name, Outcome& failure) {
  if (failure || !config.is_set(name)) return {};
  std::string path = values.path(name);
  if (values.failure()) return {};
  const auto text = read_file(path, kLargestTlsPem);
  if (!text) {
    failure = config.blame(name, text.error());
  } else if (text->find("-----BEGIN ") == std::string::npos) {
    failure = config.reject(name, "is no PEM file", "it begins with -----BEGIN");
  }
  return path;
}

}  // namespace everstep::launcher
