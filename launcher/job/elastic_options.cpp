#include "launcher/job/elastic_options.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/text.h"
#include "elastic/etcd_endpoint.h"
#include "launcher/http/http_server.h"
#include "launcher/job/train_request.h"
#include "storage/manifest.h"

namespace everstep::launcher {
namespace {

using Options = std::vector<OptionSpec>;

constexpr int kHighestPort = 65535;
constexpr int kMostElasticWorkers = 10'000;
constexpr std::int64_t kShortestLease = 2;  // etcd's own floor
constexpr std::int64_t kLongestLease = 3'600;

void read_servers(const Config& config, const std::string& text, EtcdAddress& etcd, Outcome& failure) {
  etcd.kind = EtcdAddress::Kind::kServers;
  for (std::size_t begin = 0; begin <= text.size() && !failure;) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    etcd.urls.push_back(text.substr(begin, end - begin));
    begin = end + 1;
    const auto endpoint = elastic::parse_endpoint(etcd.urls.back(), etcd.allow_plain_text);
    if (!endpoint) failure = config.reject("etcd", endpoint.error().message, endpoint.error().hint);
  }
}

void read_certificates(const Config& config, Values& values, EtcdAddress& etcd, Outcome& failure) {
  etcd.ca_path = read_pem_path(config, values, "etcd-ca", failure);
  etcd.certificate_path = read_pem_path(config, values, "etcd-cert", failure);
  etcd.key_path = read_pem_path(config, values, "etcd-key", failure);
  if (failure || etcd.certificate_path.empty() == etcd.key_path.empty()) return;
  const bool lacks_key = etcd.key_path.empty();
  failure = config.reject(lacks_key ? "etcd-cert" : "etcd-key", "a certificate and its key go together",
                          lacks_key ? "add --etcd-key=FILE" : "add --etcd-cert=FILE");
}

std::chrono::milliseconds milliseconds(Values& values, const std::string& name) {
  return std::chrono::milliseconds(std::llround(1000 * values.number(name, {.min = 0, .max = 1e6})));
}

bool is_notice(std::string_view text) {
  constexpr std::string_view kFile = "file:";
  return text == "aws" || text == "gcp" || (text.starts_with(kFile) && text.size() > kFile.size());
}

}  // namespace

std::vector<OptionSpec> etcd_options(bool required) {
  OptionSpec etcd{.name = "etcd",
                  .value_name = "URL,...",
                  .help = "The etcd servers of the job",
                  .required = required,
                  .side = OptionSide::kHost,
                  .on_resume = OnResume::kAnew};
  if (!required) {
    etcd.default_text = "own";
    etcd.help =
        "The etcd servers that keep the workers together; own starts one for this run, none does without, "
        "with workers that neither come nor go";
  }
  return {
      etcd,
      {.name = "etcd-ca",
       .value_name = "FILE",
       .help = "Who signed the certificates of the etcd servers (PEM)",
       .is_path = true,
       .side = OptionSide::kHost,
       .on_resume = OnResume::kAnew},
      {.name = "etcd-cert",
       .value_name = "FILE",
       .help = "This side's certificate for etcd (PEM)",
       .is_path = true,
       .side = OptionSide::kHost,
       .on_resume = OnResume::kAnew},
      {.name = "etcd-key",
       .value_name = "FILE",
       .help = "The key of --etcd-cert (PEM)",
       .is_path = true,
       .side = OptionSide::kHost,
       .on_resume = OnResume::kAnew},
      {.name = "etcd-plain-text",
       .help = "Allow http to etcd servers on other hosts",
       .side = OptionSide::kHost,
       .on_resume = OnResume::kAnew},
  };
}

EtcdAddress read_etcd_address(const Config& config, Values& values, Outcome& failure) {
  EtcdAddress etcd;
  const std::string text = values.text("etcd");
  etcd.allow_plain_text = values.flag("etcd-plain-text");
  if (!failure) failure = values.failure();
  if (failure) return etcd;
  if (text == "none") {
    etcd.kind = EtcdAddress::Kind::kNone;
  } else if (text != "own") {
    read_servers(config, text, etcd, failure);
    read_certificates(config, values, etcd, failure);
  }
  return etcd;
}

EtcdAddress read_etcd_servers(const Config& config, Values& values, Outcome& failure) {
  EtcdAddress etcd = read_etcd_address(config, values, failure);
  if (!failure && etcd.kind != EtcdAddress::Kind::kServers) {
    failure = config.reject("etcd", "expected the servers of a job that runs", "everstep train prints their URLs");
  }
  return etcd;
}

std::vector<OptionSpec> membership_options() {
  return {
      {.name = "lease-ttl",
       .value_name = "S",
       .default_text = "10",
       .help = "Seconds after which a worker that gives no sign of life is replaced",
       .on_resume = OnResume::kMayChange},
      {.name = "hang-limit",
       .value_name = "S",
       .default_text = "30",
       .help = "Seconds after which a computation that does not end hangs, if it also takes 20 times as long as the "
               "worker's longest one before; its lease is not renewed then",
       .on_resume = OnResume::kMayChange},
      {.name = "etcd-outage-limit",
       .value_name = "S",
       .default_text = "600",
       .help = "Seconds that training goes on while etcd does not answer; then the job ends with exit code 69",
       .on_resume = OnResume::kMayChange},
      {.name = "min-workers",
       .value_name = "N",
       .default_text = "1",
       .help = "Wait for more workers while there are fewer",
       .on_resume = OnResume::kMayChange},
      {.name = "join-debounce",
       .value_name = "S",
       .default_text = "2",
       .help = "Seconds to wait for more newcomers before the plan changes for them",
       .on_resume = OnResume::kMayChange},
      {.name = "join-interval",
       .value_name = "S",
       .default_text = "30",
       .help = "Seconds between changes of plan for newcomers",
       .on_resume = OnResume::kMayChange},
      {.name = "rebalance",
       .value_name = "WHEN",
       .default_text = "off",
       .help =
           "Plan anew around workers that have become slow, and back: off, or on (when the gain pays for the switch)",
       .on_resume = OnResume::kMayChange},
  };
}

MembershipOptions read_membership_options(Values& values) {
  MembershipOptions options;
  options.lease_ttl = std::chrono::seconds(values.integer("lease-ttl", {.min = kShortestLease, .max = kLongestLease}));
  options.hang_limit = std::chrono::seconds(values.integer("hang-limit", {.min = 1, .max = 1'000'000}));
  options.outage_limit = std::chrono::seconds(values.integer("etcd-outage-limit", {.min = 0, .max = 1'000'000}));
  options.min_workers = static_cast<int>(values.integer("min-workers", {.min = 1, .max = kMostElasticWorkers}));
  options.join_debounce = milliseconds(values, "join-debounce");
  options.join_interval = milliseconds(values, "join-interval");
  options.rebalances = values.choice("rebalance", {"off", "on"}) == 1;
  return options;
}

std::vector<OptionSpec> host_options() {
  Options options = wire_options();
  const Options others{
      {.name = "metrics",
       .value_name = "ADDRESS",
       .help = "Serve metrics for Prometheus there, such as :9464; further local workers on the ports behind it",
       .side = OptionSide::kHost,
       .on_resume = OnResume::kAnew},
      {.name = "notice",
       .value_name = "KIND",
       .help = "Leave when the cloud says so: aws, gcp, or file:PATH for when that file appears",
       .side = OptionSide::kHost,
       .on_resume = OnResume::kAnew},
      {.name = "notice-url",
       .value_name = "URL",
       .help = "Instead of the cloud's own metadata address",
       .side = OptionSide::kHost,
       .on_resume = OnResume::kAnew},
  };
  options.insert(options.end(), others.begin(), others.end());
  return options;
}

HostOptions read_host_options(const Config& config, Values& values, Outcome& failure) {
  HostOptions host;
  const auto text_if_set = [&](std::string_view name) { return config.is_set(name) ? values.path(name) : ""; };
  host.metrics = text_if_set("metrics");
  host.notice = text_if_set("notice");
  host.notice_url = text_if_set("notice-url");
  host.wire = read_wire_options(config, values, failure);
  if (!failure) failure = values.failure();
  if (failure) return host;
  if (!failure && !host.metrics.empty()) {
    const auto address = parse_listen_address(host.metrics);
    // Each local worker has a port of its own, counted from this one.
    const bool has_room = address && address->port <= kHighestPort - kMostLocalWorkers;
    if (!address) failure = config.reject("metrics", address.error().message, address.error().hint);
    if (address && !has_room) failure = config.reject("metrics", "leaves no room for the ports of further workers");
  }
  if (!failure && !host.notice.empty() && !is_notice(host.notice)) {
    failure = config.reject("notice", "expected aws, gcp or file:PATH");
  }
  if (!failure && !host.notice_url.empty() && (host.notice.empty() || host.notice.starts_with("file:"))) {
    failure = config.reject("notice-url", "goes with --notice=aws or --notice=gcp");
  }
  return host;
}

std::vector<OptionSpec> elastic_options() {
  Options all = etcd_options(false);
  for (const Options& part : {membership_options(), host_options()}) all.insert(all.end(), part.begin(), part.end());
  all.push_back({.name = "restart",
                 .value_name = "WHEN",
                 .default_text = "never",
                 .help = "Start a worker again that died: never, or on-failure",
                 .side = OptionSide::kHost,
                 .on_resume = OnResume::kAnew});
  return all;
}

ElasticOptions read_elastic_options(const Config& config, Outcome& failure) {
  Values values(config);
  ElasticOptions options;
  options.etcd = read_etcd_address(config, values, failure);
  options.membership = read_membership_options(values);
  options.host = read_host_options(config, values, failure);
  options.restart =
      values.choice("restart", {"never", "on-failure"}) == 0 ? RestartPolicy::kNever : RestartPolicy::kOnFailure;
  if (!failure) failure = values.failure();
  return options;
}

std::string read_job_name(const Config& config, Values& values, Outcome& failure) {
  std::string job = values.text("job");
  if (!failure) failure = values.failure();
  if (failure) return job;
  if (const Status checked = storage::check_job_name(job); !checked) {
    failure = config.reject("job", checked.error().message, checked.error().hint);
  }
  return job;
}

}  // namespace everstep::launcher
