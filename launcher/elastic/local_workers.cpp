#include "launcher/elastic/local_workers.h"

#include "base/text.h"
#include "launcher/elastic/elastic_defaults.h"
#include "launcher/elastic/elastic_supervisor.h"
#include "launcher/elastic/worker_order.h"
#include "launcher/train/host.h"

namespace everstep::launcher {
namespace {

std::string metrics_address(const std::string& address, int number) {
  const std::size_t colon = address.rfind(':');
  const auto port = colon == std::string::npos ? std::nullopt : parse_number<int>(address.substr(colon + 1));
  if (!port || *port == 0) return address;
  return address.substr(0, colon + 1) + std::to_string(*port + number);
}

}  // namespace

WorkerStart local_worker(const Config& config, const RunDirectory& directory, int number) {
  Config own = config;
  set_setting(own, "output", directory.path);
  if (config.is_set("metrics")) set_setting(own, "metrics", metrics_address(*config.setting("metrics").text, number));
  std::vector<std::string> args{"elastic"};
  for (std::string& arg : worker_order_arguments(own)) args.push_back(std::move(arg));
  args.push_back("--name=" + worker_name(number));
  args.emplace_back("--supervised");
  return {sibling_program("everstep-worker"), std::move(args), directory.worker_log(number)};
}

}  // namespace everstep::launcher
