#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/rehearse/trace/trace_rehearsal.h"
#include "launcher/rehearse/trace/trace_request.h"
#include "storage/json/json.h"

namespace everstep::launcher {

// How long other systems stand still for one change of membership, in seconds, and who says so.
struct PeerCost {
  std::string_view system;
  double least = 0;
  double most = 0;
  std::string_view source;
};
const std::vector<PeerCost>& peer_costs();

// A rehearsal beside what `everstep goodput` says of the same workers.
struct TraceReport {
  TraceFigures figures;
  JoinFigures joins;
  double goodput = 1;
  // If newcomers were waited for, as a share of the worker time of the trace: as long as here, and `speedup` times as
  // long.
  double late_share = 0;
  double late_share_scaled = 0;
  double cost = 0;            // seconds per change, measured
  double predicted_cost = 0;  // what the prediction was given
  double predicted = 1;       // goodput
  struct Peer {
    PeerCost cost;
    double at_least = 1;  // predicted goodput at the least cost
    double at_most = 1;
  };
  std::vector<Peer> peers;
};

TraceReport report_of(const TraceRequest& request, const TraceResult& result);

std::string report_text(const TraceRequest& request, const TraceResult& result, const TraceReport& report,
                        std::size_t columns = 0);
storage::Json report_json(const TraceRequest& request, const TraceResult& result, const TraceReport& report);

}  // namespace everstep::launcher
