#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/cli/process_table.h"
#include "launcher/rehearse/chaos/chaos_job.h"

namespace everstep::launcher::chaos {

// What workers use, at first and in the end. Those that came later are compared with the most that one used at first.
class WorkerUse {
 public:
  struct Change {
    std::vector<std::string> wrong;  // who uses too much
    std::string text;                // "a worker has at most 152 to 154 MiB, …"
  };

  void remember(const std::vector<WorkerProcess>& workers);
  Change change(const std::vector<WorkerProcess>& workers) const;

 private:
  std::map<pid_t, ProcessUse> first_;
  ProcessUse most_;
};

}  // namespace everstep::launcher::chaos
