#include "launcher/proof/audit.h"

#include <algorithm>
#include <thread>

#include "launcher/commands/commands.h"
#include "launcher/job/job_directory.h"

namespace everstep::launcher {
namespace {

Outcome run(const Config& config, Streams& streams) {
  Values values(config);
  const bool json = values.flag("json");
  OpenedJob job;
  if (auto failure = open_job_directory(config, values, job)) return failure;
  const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const auto report = audit_job(*job.store, threads, streams);
  if (!report && report.error().code == ErrorCode::kNotFound) return Failure(report.error(), ExitCode::kUsage);
  if (!report) return report.error();
  streams.out << (json ? to_text(audit_json(*report, job.location)) + "\n"
                       : audit_text(*report, job.location, streams.out_columns));
  if (report->violations.empty()) return {};
  const Violation& first = report->violations.front();
  const std::size_t more = report->violations.size() - 1;
  return Error{ErrorCode::kDataLoss,
               "audit: " + std::string(to_string(first.proof)) + ": " + first.object + " " + first.what +
                   (more == 0 ? "" : ", and " + std::to_string(more) + " more"),
               ""};
}

}  // namespace

Command audit_command() {
  CommandSpec spec;
  spec.name = "audit";
  spec.summary = "Prove from a job's files that nothing was lost or done twice";
  spec.text =
      "Looks at the checkpoints and the ledger of a job and at nothing else, and proves three things: along the ledger "
      "every minibatch was consumed exactly once (once), commits follow each other without a gap, one committer per "
      "generation, and no fallback is silent (chain), and every checkpoint that is kept is whole and can be read "
      "(restore).\nPrints a row per generation and plan, a line per proof, and ends with exit code 65 and the object "
      "and the place if one does not hold. A save that was never committed is listed and is no error.";
  spec.examples = {"everstep audit checkpoints", "everstep audit checkpoints --job=first --secret-file=job.secret"};
  spec.options = job_directory_options();
  spec.positional = job_directory_argument();
  return {spec, run};
}

}  // namespace everstep::launcher
