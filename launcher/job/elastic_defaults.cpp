#include "launcher/job/elastic_defaults.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "launcher/cli/host.h"
#include "launcher/job/run_directory.h"

namespace everstep::launcher {
namespace {

Outcome refuse_fixed_options(const Config& config) {
  if (config.is_set("trace")) {
    return config.reject("trace", "is for workers with fixed numbers", "add --etcd=none");
  }
  return {};
}

Outcome name_job(Config& config, const EtcdAddress& etcd, std::uint64_t lineage) {
  constexpr std::size_t kDigits = 8;
  if (etcd.kind != EtcdAddress::Kind::kServers || config.setting("job").source != Source::kDefault) return {};
  if (config.setting("resume").text != "no") {
    return config.reject("resume", "which job?", "name it with --job, as its directory of checkpoints is called");
  }
  set_setting(config, "job", "job-" + hex_text(lineage).substr(0, kDigits));
  return {};
}

Outcome place_checkpoints(Config& config, bool has_output) {
  const bool resumes = config.setting("resume").text != "no" && config.setting("resume").text != "auto";
  if (config.is_set("checkpoint-dir")) return {};
  if (resumes && !has_output) {
    return config.reject("resume", "where are the checkpoints?", "add --checkpoint-dir=DIR");
  }
  set_setting(config, "checkpoint-dir", *config.setting("output").text + "/checkpoints");
  return {};
}

// The plan is made by whichever worker leads, on whatever host: all must reckon with the same memory.
void share_memory(Config& config) {
  constexpr double kBytesPerGib = 1024.0 * 1024.0 * 1024.0;
  const auto workers = parse_number<int>(config.setting("workers").text.value_or(""));
  if (config.is_set("memory-gib") || !workers || *workers < 1) return;
  const double bytes = static_cast<double>(host_memory_bytes()) / *workers;
  set_setting(config, "memory-gib", shortest_text(bytes / kBytesPerGib));
}

Setting& setting_of(Config& config, std::string_view name) {
  const auto found = std::find_if(config.settings.begin(), config.settings.end(),
                                  [&](const Setting& setting) { return setting.name == name; });
  EVERSTEP_CHECK(found != config.settings.end(), "no such option: " + std::string(name));
  return *found;
}

}  // namespace

void set_setting(Config& config, std::string_view name, std::string text) {
  setting_of(config, name).text = std::move(text);
}

void set_setting(Config& config, std::string_view name, std::string text, Source source) {
  Setting& setting = setting_of(config, name);
  setting.text = std::move(text);
  setting.source = source;
}

std::string joined_urls(const EtcdAddress& etcd) {
  std::string urls;
  for (const std::string& url : etcd.urls) urls += (urls.empty() ? "" : ",") + url;
  return urls;
}

std::vector<std::pair<std::string, std::string>> certificate_settings(const EtcdAddress& etcd) {
  std::vector<std::pair<std::string, std::string>> settings;
  for (const auto& [name, path] : {std::pair("etcd-ca", &etcd.ca_path), std::pair("etcd-cert", &etcd.certificate_path),
                                   std::pair("etcd-key", &etcd.key_path)}) {
    if (!path->empty()) settings.emplace_back(name, *path);
  }
  return settings;
}

void set_etcd_address(Config& config, const EtcdAddress& etcd) {
  set_setting(config, "etcd", joined_urls(etcd));
  for (auto& [name, path] : certificate_settings(etcd)) set_setting(config, name, std::move(path));
}

Config with_elastic_defaults(Config config, const EtcdAddress& etcd, std::uint64_t lineage, Outcome& failure) {
  const bool has_output = config.is_set("output");
  failure = refuse_fixed_options(config);
  if (!has_output) set_setting(config, "output", default_run_path(std::time(nullptr), lineage));
  if (!failure) failure = name_job(config, etcd, lineage);
  if (!failure) failure = place_checkpoints(config, has_output);
  share_memory(config);
  return config;
}

}  // namespace everstep::launcher
