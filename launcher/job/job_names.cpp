#include "launcher/job/job_names.h"

#include <string_view>
#include <utility>

#include "elastic/keys.h"
#include "launcher/job/patient_store.h"
#include "storage/manifest.h"

namespace everstep::launcher {

Result<elastic::View> view_of_all_jobs(elastic::KvStore& store) {
  auto reply = transact_patiently(store, {{}, {elastic::list(std::string(elastic::kAllJobs))}, {}});
  if (!reply) return reply.error();
  elastic::View view;
  view.replace(std::move(reply->reads.at(0)), reply->revision);
  return view;
}

std::vector<std::string> job_names(const elastic::View& view) {
  std::vector<std::string> names;
  for (const elastic::KeyValue* item : view.below(elastic::kAllJobs)) {
    const std::string_view key = item->key;
    const std::string_view rest = key.substr(elastic::kAllJobs.size());
    std::string name(rest.substr(0, rest.find('/')));
    const bool is_new = names.empty() || names.back() != name;
    if (is_new && storage::check_job_name(name).ok()) names.push_back(std::move(name));
  }
  return names;
}

Result<std::vector<std::string>> list_job_names(elastic::KvStore& store) {
  const auto view = view_of_all_jobs(store);
  if (!view) return view.error();
  return job_names(*view);
}

}  // namespace everstep::launcher
