#include "launcher/supervise/local_workers.h"

#include "base/check.h"
#include "launcher/cli/host.h"
#include "launcher/http/http_server.h"
#include "launcher/job/elastic_defaults.h"
#include "launcher/supervise/elastic_supervisor.h"
#include "launcher/worker/worker_order.h"

namespace everstep::launcher {
namespace {

// Checked before: there are as many ports.
std::string metrics_address(const std::string& text, int number) {
  const auto address = parse_listen_address(text);
  EVERSTEP_CHECK(address.ok(), "an address for metrics that is none");
  if (address->port == 0) return text;
  const bool is_ipv6 = address->host.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + address->host + "]" : address->host) + ":" + std::to_string(address->port + number);
}

}  // namespace

WorkerStart local_worker(const Config& config, const RunDirectory& directory, int number,
                         const std::string& name_prefix, const std::string& device) {
  Config own = config;
  set_setting(own, "output", directory.path);
  if (config.is_set("metrics")) set_setting(own, "metrics", metrics_address(*config.setting("metrics").text, number));
  if (!device.empty()) set_setting(own, "device", device);
  std::vector<std::string> args{"elastic"};
  for (std::string& arg : worker_order_arguments(own)) args.push_back(std::move(arg));
  args.push_back("--name=" + worker_name(number, name_prefix));
  args.emplace_back("--supervised");
  return {sibling_program("everstep-worker"), std::move(args), directory.worker_log(number), true};
}

}  // namespace everstep::launcher
