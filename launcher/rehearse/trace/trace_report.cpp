#include "launcher/rehearse/trace/trace_report.h"

#include <cmath>

#include "launcher/job/plan_request.h"
#include "launcher/job/train_plan.h"
#include "scheduler/goodput.h"
#include "scheduler/plan.h"

namespace everstep::launcher {
namespace {

scheduler::PlanRate rate_of(const TrainRequest& job, int workers) {
  const auto plan = make_train_plan(job, unnamed_workers(workers), nullptr);
  if (!plan) return {0, "no plan"};
  const scheduler::Plan& chosen = plan->plan;
  return {static_cast<double>(chosen.window) / to_seconds(plan->predicted_window),
          describe(chosen.kind, chosen.depth, chosen.pipelines, chosen.width)};
}

double predicted(const scheduler::MembershipTrace& trace, const TrainRequest& job, double cost) {
  const scheduler::GoodputOptions options{std::llround(cost * 1000), 1, 0};
  return predict_goodput(trace, options, [&](int workers) { return rate_of(job, workers); }).fraction();
}

}  // namespace

const std::vector<PeerCost>& peer_costs() {
  static const std::vector<PeerCost> costs{
      {"restart from a checkpoint", 51.6, 51.6, "goodput 0.80 on the whole p3 trace, everstep goodput"},
      {"Varuna", 76, 701, "published (EuroSys 2022 and papers that compare with it)"},
      {"Parcae", 29, 38, "published (NSDI 2024): restart"},
      {"TrainMover", 20, 20, "published (2024)"},
      {"Oobleck", 2, 10, "published (SOSP 2023)"},
      {"torchrun elastic", 2.9, 9, "measured, bench/recovery: a small model, a checkpoint every step"},
      {"torchft 0.2", 5.0, 5.2, "measured, bench/recovery: a small model, two replicas"},
  };
  return costs;
}

TraceReport report_of(const TraceRequest& request, const TraceResult& result) {
  TraceReport report;
  report.figures = figures_of(result.record);
  report.joins = join_figures_of(result.record.joins);
  report.goodput = goodput_of(report.figures.lost(), request.slice.duration_ms);
  const scheduler::MembershipTrace trace = membership_of(request.schedule);
  const double worker_seconds = trace.mean_workers() * static_cast<double>(trace.duration_ms) / 1000;
  report.late_share = report.joins.total / worker_seconds;
  report.late_share_scaled = report.late_share * request.speedup;
  report.cost = report.figures.cost_per_change(trace.changes());
  report.predicted_cost = request.cost.value_or(report.cost);
  report.predicted = predicted(trace, result.job, report.predicted_cost);
  for (const PeerCost& cost : peer_costs()) {
    report.peers.push_back({cost, predicted(trace, result.job, cost.least), predicted(trace, result.job, cost.most)});
  }
  return report;
}

}  // namespace everstep::launcher
