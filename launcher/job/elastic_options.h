#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "launcher/cli/config.h"
#include "launcher/cli/exit_code.h"
#include "launcher/cli/options.h"
#include "launcher/cli/values.h"
#include "launcher/job/wire_options.h"

namespace everstep::launcher {

// The etcd that keeps a job together, as --etcd and the options that go with it name it.
struct EtcdAddress {
  enum class Kind {
    kOwn,      // one that is started for the run and ends with it
    kNone,     // no coordination: the workers are fixed
    kServers,  // running already
  };

  Kind kind = Kind::kOwn;
  std::vector<std::string> urls{};  // kServers
  bool allow_plain_text = false;    // http to other hosts
  std::string ca_path{};            // PEM files; empty: none
  std::string certificate_path{};
  std::string key_path{};

  bool operator==(const EtcdAddress&) const = default;
};

// How a job treats workers that come and go; the same for all of them.
struct MembershipOptions {
  std::chrono::seconds lease_ttl{10};
  std::chrono::seconds hang_limit{30};     // no op may take longer, unless others take long, too
  std::chrono::seconds outage_limit{600};  // training goes on so long while etcd does not answer, no longer
  int min_workers = 1;
  std::chrono::milliseconds join_debounce{2'000};
  std::chrono::milliseconds join_interval{30'000};
  bool rebalances = false;

  bool operator==(const MembershipOptions&) const = default;
};

// What each worker may have otherwise, because its host does.
struct HostOptions {
  WireOptions wire;
  std::string metrics;     // "ADDRESS:PORT"; empty: none
  std::string notice;      // "file:PATH", "aws" or "gcp"; empty: none
  std::string notice_url;  // instead of the cloud's own metadata address; empty: that one

  bool operator==(const HostOptions&) const = default;
};

enum class RestartPolicy { kNever, kOnFailure };

// --etcd, --etcd-ca, --etcd-cert, --etcd-key and --etcd-plain-text. Commands about a job that runs need one that does:
// for them `required` leaves out own and none.
std::vector<OptionSpec> etcd_options(bool required);
EtcdAddress read_etcd_address(const Config& config, Values& values, Outcome& failure);
// The same for commands about a job that runs.
EtcdAddress read_etcd_servers(const Config& config, Values& values, Outcome& failure);

std::vector<OptionSpec> membership_options();
MembershipOptions read_membership_options(Values& values);

std::vector<OptionSpec> host_options();
HostOptions read_host_options(const Config& config, Values& values, Outcome& failure);

// All of the above and --restart, for `everstep train`.
std::vector<OptionSpec> elastic_options();

struct ElasticOptions {
  EtcdAddress etcd;
  MembershipOptions membership;
  HostOptions host;
  RestartPolicy restart = RestartPolicy::kNever;

  bool operator==(const ElasticOptions&) const = default;
};
ElasticOptions read_elastic_options(const Config& config, Outcome& failure);

// --job as a name that keys and directories may have.
std::string read_job_name(const Config& config, Values& values, Outcome& failure);

}  // namespace everstep::launcher
