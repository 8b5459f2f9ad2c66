#include "launcher/status/job_list.h"

#include <utility>

#include "launcher/cli/printable.h"
#include "launcher/cli/table.h"
#include "launcher/job/job_names.h"

namespace everstep::launcher {
namespace {

// Where nobody trains, the newest checkpoint tells it.
std::string step_of(const JobStatus& job) {
  if (job.progress) return std::to_string(job.progress->step) + "/" + std::to_string(job.progress->steps);
  return job.head_step ? std::to_string(*job.head_step) : "-";
}

std::string plan_of(const JobStatus& job) {
  if (!job.generation) return "-";
  const scheduler::Plan& plan = job.generation->roster.plan;
  return describe(plan.kind, plan.depth, plan.pipelines, plan.width);
}

}  // namespace

Result<std::vector<JobStatus>> list_jobs(elastic::KvStore& store, const JobSecret& secret) {
  const auto view = view_of_all_jobs(store);
  if (!view) return view.error();
  std::vector<JobStatus> jobs;
  for (const std::string& name : job_names(*view)) jobs.push_back(read_job_status(*view, name, secret));
  return jobs;
}

std::string job_list_text(const std::vector<JobStatus>& jobs, std::size_t columns) {
  if (jobs.empty()) return "no jobs\n";
  Table table;
  table.columns = {
      {"job"}, {"state"}, {"step", Align::kRight}, {"workers", Align::kRight}, {"generation", Align::kRight}, {"plan"}};
  for (const JobStatus& job : jobs) {
    table.rows.push_back({job.job, printable(job.state), step_of(job), std::to_string(job.workers.size()),
                          job.generation ? std::to_string(job.generation->roster.attempt.generation.value) : "-",
                          plan_of(job)});
  }
  return to_text(table, columns);
}

storage::Json job_list_json(const std::vector<JobStatus>& jobs) {
  storage::Json all = storage::Json::array();
  for (const JobStatus& job : jobs) all.append(status_json(job));
  return storage::Json::object().set("jobs", std::move(all));
}

}  // namespace everstep::launcher
