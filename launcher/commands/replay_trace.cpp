#include "launcher/commands/commands.h"
#include "launcher/rehearse/trace/trace_rehearsal.h"
#include "launcher/rehearse/trace/trace_report.h"
#include "launcher/rehearse/trace/trace_request.h"

namespace everstep::launcher {
namespace {

Outcome run(const Config& config, Streams& streams) {
  Outcome failure;
  const TraceRequest request = read_trace_request(config, failure);
  if (failure) return failure;
  TraceResult result;
  failure = rehearse_trace(request, streams, result);
  if (failure) return failure;
  const TraceReport report = report_of(request, result);
  streams.out << (request.json ? storage::to_text(report_json(request, result, report)) + "\n"
                               : report_text(request, result, report, streams.out_columns));
  if (!result.problems.empty()) return Error{ErrorCode::kDataLoss, "audit: " + result.problems.front(), ""};
  if (result.ended.empty()) return {};
  return Error{ErrorCode::kInternal, result.ended.front() + " ended though nobody wanted it to",
               "its log is in " + result.output};
}

}  // namespace

Command replay_trace_command() {
  CommandSpec spec;
  spec.name = "replay-trace";
  spec.summary = "Let a spot trace kill and start the workers of a real job";
  spec.text =
      "Runs a job on this host with an etcd of its own and real worker processes, which wait instead of computing, and "
      "kills and starts them as the trace says, --speedup times as fast. Prints what the changes cost by phase, the "
      "minibatches redone, the goodput, and what everstep goodput says of the same workers: at the mean cost of this "
      "run, or of another one with --cost, and at the costs that are known of other systems. In the end the job is "
      "stopped and its files are audited.\n"
      "A trace has lines 'milliseconds,add|remove,node'. With at most N = --most-workers nodes at once each node is a "
      "worker. With more, at most K, an instant that takes r nodes kills ceil(r N / K) workers at once, those of the "
      "same rank by age; one that gives a nodes starts ceil(a N / K). The number of workers stays within one of its "
      "share: where kills took more, others start at the same instant, and starts that would give more do not happen. "
      "So no loss is left out, and none hits a smaller share of the job.\n"
      "Goodput is 1 - (stalls + redone work + pauses) / time of the trace. All three are measured between updates, in "
      "real seconds, which do not shrink with the trace: a stall of 0.2 s counts 0.2 s against 3600 s of an hour. What "
      "waits on purpose (--join-debounce, --join-interval, --lease-ttl of everstep train) is divided by the speedup, "
      "and printed. A newcomer's start is no stall, since the others train meanwhile; it is printed apart.";
  spec.examples = {"everstep replay-trace examples/traces/bamboo/p3-trace.csv --speedup=24",
                   "everstep replay-trace examples/traces/bamboo/p3-trace.csv --busiest-hour --notice=120 --json",
                   "everstep replay-trace p3-trace.csv --from=6 --hours=0.5 --most-workers=8 --emulate=50:100"};
  spec.options = trace_options();
  spec.positional = {"FILE", "The trace", 1, 1};
  return {spec, run};
}

}  // namespace everstep::launcher
