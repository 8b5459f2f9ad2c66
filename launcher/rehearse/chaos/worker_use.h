#pragma once

#include <string>
#include <vector>

#include "launcher/cli/process_table.h"
#include "launcher/rehearse/chaos/chaos_job.h"
#include "launcher/rehearse/chaos/checks.h"

namespace everstep::launcher::chaos {

struct WorkerUse {
  std::string name;
  ProcessUse use;
};

// Of those that live.
std::vector<WorkerUse> uses_of(const std::vector<WorkerProcess>& workers);

// How the use of workers changed. Each is compared with the most that one of them used at first: one that came later,
// or was a spare then, may train now, and trains as the others did.
struct UseChange {
  std::vector<std::string> wrong;  // who uses too much
  std::string text;                // "a worker has at most 152 to 154 MiB, …"
};
UseChange use_change(const std::vector<WorkerUse>& first, const std::vector<WorkerUse>& now,
                     const Allowance& allowance);

}  // namespace everstep::launcher::chaos
