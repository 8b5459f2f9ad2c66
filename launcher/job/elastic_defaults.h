#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "launcher/cli/config.h"
#include "launcher/job/elastic_options.h"

namespace everstep::launcher {

// Replaces the text of a setting; and where it is from.
void set_setting(Config& config, std::string_view name, std::string text);
void set_setting(Config& config, std::string_view name, std::string text, Source source);

// As --etcd takes them: "https://a:2379,https://b:2379".
std::string joined_urls(const EtcdAddress& etcd);
// The options that name certificates, with their values, as far as there are any.
std::vector<std::pair<std::string, std::string>> certificate_settings(const EtcdAddress& etcd);

// The options that name these servers, and who we are to them.
void set_etcd_address(Config& config, const EtcdAddress& etcd);

// Fills in what an elastic run cannot do without: an output directory, checkpoints in it if nobody says where, a
// name for the job that no other has in a shared etcd, and what memory a worker has. Refuses options that only fixed
// workers have.
Config with_elastic_defaults(Config config, const EtcdAddress& etcd, std::uint64_t lineage, Outcome& failure);

}  // namespace everstep::launcher
