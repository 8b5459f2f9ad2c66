#include "launcher/rehearse/chaos/worker_use.h"

#include <algorithm>
#include <utility>

#include "launcher/rehearse/chaos/checks.h"

namespace everstep::launcher::chaos {
namespace {

void raise(ProcessUse& most, const ProcessUse& use) {
  most.resident_bytes = std::max(most.resident_bytes, use.resident_bytes);
  most.descriptors = std::max(most.descriptors, use.descriptors);
  most.threads = std::max(most.threads, use.threads);
}

std::string range(std::int64_t was, std::int64_t is, const std::string& what) {
  return std::to_string(was) + " to " + std::to_string(is) + " " + what;
}

}  // namespace

void WorkerUse::remember(const std::vector<WorkerProcess>& workers) {
  for (const WorkerProcess& worker : workers) {
    const auto use = use_of(worker.pid);
    if (!use) continue;
    first_[worker.pid] = *use;
    raise(most_, *use);
  }
}

WorkerUse::Change WorkerUse::change(const std::vector<WorkerProcess>& workers) const {
  Change change;
  ProcessUse now;
  for (const WorkerProcess& worker : workers) {
    const auto use = use_of(worker.pid);
    if (!use) continue;
    const auto first = first_.find(worker.pid);
    for (std::string& one : uses_too_much(worker.name, *use, first == first_.end() ? most_ : first->second, {})) {
      change.wrong.push_back(std::move(one));
    }
    raise(now, *use);
  }
  constexpr int kMebibyteBits = 20;
  change.text = "a worker has at most " +
                range(most_.resident_bytes >> kMebibyteBits, now.resident_bytes >> kMebibyteBits, "MiB") + ", " +
                range(most_.descriptors, now.descriptors, "descriptors") + ", " +
                range(most_.threads, now.threads, "threads");
  return change;
}

}  // namespace everstep::launcher::chaos
