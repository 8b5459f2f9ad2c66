#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "launcher/cli/table.h"
#include "launcher/rehearse/trace/trace_report.h"
#include "launcher/worker/metrics.h"

namespace everstep::launcher {
namespace {

using storage::Json;
using PhaseSeconds = std::array<double, kPhases>;

// Changes of one kind, added up.
struct Sum {
  std::string name;
  int changes = 0;
  PhaseSeconds phases{};
  std::int64_t redone = 0;
  double stall = 0;
  double redone_seconds = 0;
  double largest = 0;
};

PhaseSeconds seconds_of(const GenerationChanged::Phases& phases) {
  return {phases.detect, phases.agree, phases.connect, phases.move, phases.first_step};
}

void add(Sum& sum, const ChangeFigures& change) {
  ++sum.changes;
  const PhaseSeconds phases = seconds_of(change.phases);
  for (std::size_t i = 0; i < kPhases; ++i) sum.phases[i] += phases[i];
  sum.redone += change.redone;
  sum.stall += change.stall;
  sum.redone_seconds += change.redone_seconds;
  sum.largest = std::max(sum.largest, change.lost());
}

std::vector<Sum> sums_of(const TraceFigures& figures) {
  std::vector<Sum> sums{{.name = "loss"}, {.name = "join or leave"}, {.name = "all"}};
  for (const ChangeFigures& change : figures.changes) {
    add(sums[change.is_loss ? 0 : 1], change);
    add(sums[2], change);
  }
  return sums;
}

std::string seconds_text(double seconds) { return fixed_text(seconds, 3); }

Table change_table(const TraceFigures& figures) {
  Table table;
  table.columns = {{"change"}, {"number", Align::kRight}};
  for (std::size_t i = 0; i < kPhases; ++i) {
    table.columns.push_back({std::string(to_string(static_cast<Phase>(i))), Align::kRight});
  }
  for (const char* title : {"stall s", "redone", "redone s", "worst s"})
    table.columns.push_back({title, Align::kRight});
  for (const Sum& sum : sums_of(figures)) {
    std::vector<std::string> row{sum.name, std::to_string(sum.changes)};
    for (const double seconds : sum.phases) row.push_back(seconds_text(seconds));
    for (std::string& cell : std::vector<std::string>{seconds_text(sum.stall), grouped(sum.redone),
                                                      seconds_text(sum.redone_seconds), seconds_text(sum.largest)}) {
      row.push_back(std::move(cell));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string range_of(double a, double b, int decimals) {
  const std::string first = number_text(a, decimals);
  return a == b ? first : first + " … " + number_text(b, decimals);
}

Table peer_table(const TraceReport& report, bool whole_job) {
  Table table;
  table.columns = {{"system"}, {"s per change", Align::kRight}, {"goodput here", Align::kRight}, {"source"}};
  table.rows.push_back({"everstep, measured", number_text(report.cost, 3), fixed_text(report.goodput, 4),
                        whole_job ? "this run" : "this run, with workers that ended by themselves"});
  table.rows.push_back({"everstep, simulated", number_text(report.predicted_cost, 3), fixed_text(report.predicted, 4),
                        "everstep goodput on the same workers"});
  for (const TraceReport::Peer& peer : report.peers) {
    table.rows.push_back({std::string(peer.cost.system), range_of(peer.cost.least, peer.cost.most, 1),
                          range_of(peer.at_least, peer.at_most, 3), std::string(peer.cost.source)});
  }
  return table;
}

std::string hours_text(std::int64_t ms) { return number_text(static_cast<double>(ms) / 3.6e6, 3); }

std::string trace_lines(const TraceRequest& request) {
  const TraceSlice& slice = request.slice;
  const WorkerSchedule& schedule = request.schedule;
  const ScaledLimits& limits = request.limits;
  std::string text = "trace      " + request.path + ", " + hours_text(slice.from_ms) + " h to " +
                     hours_text(slice.from_ms + slice.duration_ms) + " h\n           " +
                     counted(std::ssize(slice.instants), "change", "changes") + ": " +
                     counted(slice.removed(), "node", "nodes") + " taken at " +
                     counted(slice.removals(), "instant", "instants") + ", " + std::to_string(slice.added()) +
                     " given, at most " + std::to_string(slice.most_nodes()) + " at once\n";
  text += "workers    at most " + std::to_string(std::min(request.most_workers, slice.most_nodes())) + ": " +
          counted(std::ssize(schedule.changes), "change", "changes") + ", " + std::to_string(schedule.killed()) +
          (request.notice > 0 ? " taken (SIGTERM, then SIGKILL " + number_text(request.notice, 3) + " s later) at "
                              : " killed (SIGKILL) at ") +
          counted(schedule.losses(), "instant", "instants") + ", " + std::to_string(schedule.started()) + " started\n";
  text += "speed      " + number_text(request.speedup, 3) + " times: " + number_text(request.real_seconds(), 1) +
          " s; scaled too: join debounce " + number_text(limits.join_debounce, 3) + " s, join interval " +
          number_text(limits.join_interval, 3) + " s, lease " + std::to_string(limits.lease_ttl) + " s (at least " +
          std::to_string(kShortestLease) + ")\n";
  return text;
}

std::string verdict_lines(const TraceResult& result) {
  std::string text = "proof      ";
  text += result.problems.empty()
              ? counted(result.audited, "minibatch", "minibatches") + ", each exactly once (everstep audit)"
              : "FAILED: " + result.problems.front();
  if (!result.took_all_in) text += "\nopen       the job did not take all workers in by the end";
  for (const std::string& name : result.ended) text += "\nended      " + name + ", though nobody wanted it to";
  return text + "\noutput     " + result.output + "\n";
}

Json to_json(const Sum& sum) {
  Json phases = Json::object();
  for (std::size_t i = 0; i < kPhases; ++i) {
    phases.set(std::string(to_string(static_cast<Phase>(i))), sum.phases[i]);
  }
  Json json = Json::object().set("kind", sum.name).set("changes", sum.changes).set("phase_seconds", std::move(phases));
  json.set("stall_seconds", sum.stall).set("minibatches_redone", sum.redone);
  return json.set("redone_seconds", sum.redone_seconds).set("largest_seconds", sum.largest);
}

}  // namespace

std::string report_text(const TraceRequest& request, const TraceResult& result, const TraceReport& report,
                        std::size_t columns) {
  const TraceFigures& figures = report.figures;
  std::string text = trace_lines(request);
  text += "job        emulated, " + *request.train.setting("emulate").text + " ms a stage; " +
          counted(figures.steps, "update", "updates") + " of " + std::to_string(result.record.window) +
          " minibatches, " + seconds_text(figures.shortest_step) + " to " + seconds_text(figures.longest_step) +
          " s each; " + counted(std::ssize(figures.changes), "generation", "generations") + " after the first\n\n";
  text += to_text(change_table(figures), columns) +
          "phases as the job tells them, of the last attempt; stalls and redone work from the times of updates\n\n";
  text += "goodput    " + fixed_text(report.goodput, 4) + " = 1 - (" + seconds_text(figures.stalls()) +
          " s stalled + " + seconds_text(figures.redone_seconds()) + " s redone + " + seconds_text(figures.pauses) +
          " s paused) / " + number_text(static_cast<double>(request.slice.duration_ms) / 1000, 1) +
          " s of trace\n           real seconds against the trace's own: what a change costs does not shrink with it\n";
  text += "simulated  " + fixed_text(report.predicted, 4) + " at " + seconds_text(report.predicted_cost) +
          " s for each of " + counted(membership_of(request.schedule).changes(), "change", "changes") +
          (request.cost ? ", as --cost says" : ", the mean measured here") + "; apart by " +
          fixed_text(100 * std::abs(report.goodput - report.predicted), 2) + " points\n";
  text += "late       " + counted(report.joins.joined, "newcomer", "newcomers") + " trained after " +
          number_text(report.joins.median, 2) + " s (median), " + number_text(report.joins.longest, 2) +
          " s at most (spares wait longer); others trained meanwhile, so this is no stall:\n           " +
          fixed_text(100 * report.late_share, 2) + " % of the workers' time, " +
          fixed_text(100 * report.late_share_scaled, 1) + " % if each took " + number_text(request.speedup, 3) +
          " times as long\n";
  text += verdict_lines(result) + "\n" + to_text(peer_table(report, result.ended.empty()), columns) +
          "the others' costs are theirs, of other models and machines; here a small state moves between processes\n";
  return text;
}

Json report_json(const TraceRequest& request, const TraceResult& result, const TraceReport& report) {
  const TraceSlice& slice = request.slice;
  const TraceFigures& figures = report.figures;
  Json json = Json::object();
  json.set("trace", request.path).set("from_seconds", static_cast<double>(slice.from_ms) / 1000);
  json.set("trace_seconds", static_cast<double>(slice.duration_ms) / 1000).set("speedup", request.speedup);
  json.set("notice_seconds", request.notice);
  json.set("nodes", Json::object()
                        .set("changes", std::ssize(slice.instants))
                        .set("removed", slice.removed())
                        .set("removals", slice.removals())
                        .set("added", slice.added())
                        .set("most", slice.most_nodes()));
  json.set("workers", Json::object()
                          .set("first", request.schedule.first_workers)
                          .set("changes", std::ssize(request.schedule.changes))
                          .set("killed", result.killed)
                          .set("left", result.asked_to_leave)
                          .set("started", result.started)
                          .set("ended_by_themselves", std::ssize(result.ended)));
  json.set("limits", Json::object()
                         .set("join_debounce_seconds", request.limits.join_debounce)
                         .set("join_interval_seconds", request.limits.join_interval)
                         .set("lease_ttl_seconds", request.limits.lease_ttl));
  json.set("goodput", report.goodput).set("simulated_goodput", report.predicted).set("seconds_per_change", report.cost);
  json.set("simulated_seconds_per_change", report.predicted_cost);
  json.set("stall_seconds", figures.stalls()).set("redone_seconds", figures.redone_seconds());
  json.set("pause_seconds", figures.pauses).set("minibatches_redone", figures.redone());
  json.set("updates", figures.steps).set("updates_redone", figures.steps_redone);
  json.set("generations", std::ssize(figures.changes) + 1);
  json.set("shortest_update_seconds", figures.shortest_step).set("longest_update_seconds", figures.longest_step);
  Json kinds = Json::array();
  for (const Sum& sum : sums_of(figures)) kinds.append(to_json(sum));
  json.set("kinds", std::move(kinds));
  json.set("late", Json::object()
                       .set("joined", report.joins.joined)
                       .set("median_seconds", report.joins.median)
                       .set("longest_seconds", report.joins.longest)
                       .set("share", report.late_share)
                       .set("share_scaled", report.late_share_scaled));
  json.set("settled", result.took_all_in).set("minibatches_proven", result.audited);
  json.set("problems", std::ssize(result.problems)).set("output", result.output);
  Json peers = Json::array();
  for (const TraceReport::Peer& peer : report.peers) {
    peers.append(Json::object()
                     .set("system", std::string(peer.cost.system))
                     .set("least_seconds", peer.cost.least)
                     .set("most_seconds", peer.cost.most)
                     .set("goodput_at_least", peer.at_least)
                     .set("goodput_at_most", peer.at_most)
                     .set("source", std::string(peer.cost.source)));
  }
  return json.set("peers", std::move(peers));
}

}  // namespace everstep::launcher
