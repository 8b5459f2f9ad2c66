#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/rehearse/trace/replay_request.h"
#include "launcher/rehearse/trace/trace_replay.h"
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

// A replay beside what `everstep goodput` says of the same workers.
struct TraceReplayReport {
  ReplayFigures figures;
  JoinFigures joins;
  double goodput = 1;
  // If newcomers were waited for, as a share of the worker time of the trace: as long as here, and `speedup` times as
  // long.
  double late_share = 0;
  double late_share_scaled = 0;
  double cost = 0;            // seconds per change, measured
  double simulated_cost = 0;  // what the simulation was given
  double simulated = 1;       // goodput
  struct Peer {
    PeerCost cost;
    double at_least = 1;  // simulated goodput at the least cost
    double at_most = 1;
  };
  std::vector<Peer> peers;
};

TraceReplayReport report_of(const TraceReplayRequest& request, const ReplayResult& result);

std::string report_text(const TraceReplayRequest& request, const ReplayResult& result, const TraceReplayReport& report,
                        std::size_t columns = 0);
storage::Json report_json(const TraceReplayRequest& request, const ReplayResult& result,
                          const TraceReplayReport& report);

}  // namespace everstep::launcher
