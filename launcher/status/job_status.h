#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "elastic/brain/situation.h"
#include "elastic/records.h"
#include "elastic/view.h"
#include "launcher/job/job_secret.h"
#include "storage/json/json.h"

namespace everstep::launcher {

// How long a minibatch takes there and back.
struct StageTime {
  int stage = 0;
  double ms = 0;
};

struct WorkerStatus {
  elastic::MemberRecord record;
  std::string state;  // "training", "spare", "standing by", "leaving", "warming", "handing over"
  std::optional<int> group;
  std::optional<int> device;
  std::optional<double> computed_ms;   // for the last update: the time of its stages
  std::vector<StageTime> stage_times;  // medians over the last updates; empty: not known
  std::optional<double> slowness;      // how many times as long as the median worker it computes, for what it has to do
  bool leads = false;
};

struct QuarantinedHost {
  std::string host;
  elastic::QuarantineRecord record;
};

// A proposal that is being prepared while the present generation trains.
struct ComingGeneration {
  elastic::RosterRecord roster;
  std::size_t connected = 0;  // of those that must be
};

// What the keys of a job tell. All texts are as the workers wrote them: status_text makes them fit for a terminal.
struct JobStatus {
  std::string job;
  std::string state;                     // "training", "draining", "waiting for workers", "finished", "stopped", …
  std::string why;                       // what it waits for, or who is leaving; empty if there is nothing to say
  std::optional<elastic::JobSpec> spec;  // nothing: it cannot be read
  std::optional<elastic::ProgressRecord> progress;
  std::optional<elastic::GenerationRecord> generation;
  std::vector<WorkerStatus> workers;  // those of the plan in its order, then spares, then others by name
  // What may be lost at once without going back to a checkpoint; nothing: no copies are kept, or nobody trains.
  std::optional<scheduler::Survival> survives;
  std::optional<std::string> straggler;  // a worker that computes much longer than the others, by name
  std::vector<std::string> too_many;     // by name: the fewest workers whose loss at once would be
  std::optional<elastic::HeadRecord> head;
  std::optional<std::int64_t> head_step;
  std::optional<ComingGeneration> coming;
  std::optional<elastic::DrainRecord> drain;
  std::vector<QuarantinedHost> quarantines;
  bool is_checked = false;  // what is forged is left out
  std::string resume{};     // the command that goes on, for a job that nobody works for; empty: none

  // Finished or stopped: it does nothing more unless somebody begins anew.
  bool is_over() const { return state == "finished" || state == "stopped"; }

  const WorkerStatus* leader() const;
};

// Pure. `stored` holds the job's live keys as the store does, sealed or not, and may hold more.
JobStatus read_job_status(const elastic::View& stored, const std::string& job, const JobSecret& secret);

// Likewise, of keys as a sealed store tells them. `is_checked`: with the job's secret.
JobStatus read_opened_status(const elastic::View& view, const std::string& job, bool is_checked);

// The job's checkpoints as its spec names them, "DIR/JOB"; empty: the spec cannot be read.
std::string checkpoints_of(const JobStatus& status);

// For people, on a terminal of so many columns (0: of any). `--watch` prints the same again and again.
std::string status_text(const JobStatus& status, std::size_t columns = 0);
storage::Json status_json(const JobStatus& status);

// The first eight digits of a worker's id: what people type.
std::string short_id(const WorkerId& id);

}  // namespace everstep::launcher
