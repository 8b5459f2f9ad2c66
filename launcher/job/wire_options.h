#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/cli/config.h"
#include "launcher/cli/exit_code.h"
#include "launcher/cli/options.h"
#include "launcher/cli/values.h"

namespace everstep::launcher {

// How a worker and its peers call each other. Without a secret they do so within one host only, and none of this is
// set.
struct WireOptions {
  std::string bind = "127.0.0.1";                 // where it listens for other hosts
  std::string advertise;                          // what they call; empty: what it listens on
  std::optional<std::pair<int, int>> port_range;  // first and last; nothing: any free port
  bool tcp_only = false;                          // also within this host
  std::string tls_ca;                             // PEM files; empty: none
  std::string tls_cert;
  std::string tls_key;

  bool operator==(const WireOptions&) const = default;
};

// --bind, --advertise, --port-range, --wire, --tls-ca, --tls-cert and --tls-key.
std::vector<OptionSpec> wire_options();

// Each of them but --wire=auto is refused without --secret-file.
WireOptions read_wire_options(const Config& config, Values& values, Outcome& failure);

// A file that is there and holds PEM; empty: the option is not set. What the file says is for others to judge.
std::string read_pem_path(const Config& config, Values& values, const std::string& name, Outcome& failure);

}  // namespace everstep::launcher
