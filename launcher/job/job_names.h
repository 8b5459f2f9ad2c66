#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "elastic/kv_store.h"
#include "elastic/view.h"

namespace everstep::launcher {

// What an etcd holds of all jobs, at one instant.
Result<elastic::View> view_of_all_jobs(elastic::KvStore& store);

// The names of the jobs that a view of kAllJobs holds, in the order of their keys. Those that no job may have are left
// out.
std::vector<std::string> job_names(const elastic::View& view);

// Those of an etcd.
Result<std::vector<std::string>> list_job_names(elastic::KvStore& store);

}  // namespace everstep::launcher
