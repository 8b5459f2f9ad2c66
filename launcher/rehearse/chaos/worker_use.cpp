#include "launcher/rehearse/chaos/worker_use.h"

#include <algorithm>
#include <utility>

namespace everstep::launcher::chaos {
namespace {

ProcessUse most_of(const std::vector<WorkerUse>& workers) {
  ProcessUse most;
  for (const WorkerUse& worker : workers) {
    most.resident_bytes = std::max(most.resident_bytes, worker.use.resident_bytes);
    most.descriptors = std::max(most.descriptors, worker.use.descriptors);
    most.threads = std::max(most.threads, worker.use.threads);
  }
  return most;
}

std::string range(std::int64_t was, std::int64_t is, const std::string& what) {
  return std::to_string(was) + " to " + std::to_string(is) + " " + what;
}

}  // namespace

std::vector<WorkerUse> uses_of(const std::vector<WorkerProcess>& workers) {
  std::vector<WorkerUse> uses;
  for (const WorkerProcess& worker : workers) {
    if (const auto use = use_of(worker.pid)) uses.push_back({worker.name, *use});
  }
  return uses;
}

UseChange use_change(const std::vector<WorkerUse>& first, const std::vector<WorkerUse>& now,
                     const Allowance& allowance) {
  const ProcessUse most_first = most_of(first);
  const ProcessUse most_now = most_of(now);
  UseChange change;
  for (const WorkerUse& worker : now) {
    for (std::string& one : uses_too_much(worker.name, worker.use, most_first, allowance)) {
      change.wrong.push_back(std::move(one));
    }
  }
  constexpr int kMebibyteBits = 20;
  change.text = "a worker has at most " +
                range(most_first.resident_bytes >> kMebibyteBits, most_now.resident_bytes >> kMebibyteBits, "MiB") +
                ", " + range(most_first.descriptors, most_now.descriptors, "descriptors") + ", " +
                range(most_first.threads, most_now.threads, "threads");
  return change;
}

}  // namespace everstep::launcher::chaos
