#pragma once

#include "elastic/keys.h"
#include "elastic/kv_store.h"
#include "launcher/supervise/elastic_supervisor.h"
#include "launcher/supervise/generation_report.h"
#include "launcher/supervise/prepared_run.h"
#include "launcher/supervise/run_reporter.h"
#include "launcher/supervise/run_summary.h"

namespace everstep::launcher {

// What is left when the local workers of an elastic job have ended.
struct JobEnd {
  const PreparedRun& run;
  elastic::KvStore& store;
  elastic::Keys keys;
  const ElasticEnd& end;
};

// The plan is that of the last generation, if the store still tells it.
RunSummary summarize(const JobEnd& job, const RunReporter& reporter, const GenerationTally& tally);

// How a run ends whose etcd was away (ElasticEnd::etcd_was_away): what it had reached, and what is left of it.
Failure lost_without_etcd(const JobEnd& job, const RunReporter& reporter);

// Whether the last step is in a checkpoint. Only who started the job looks.
Outcome check_last_checkpoint(const JobEnd& job, const RunSummary& summary);

}  // namespace everstep::launcher
