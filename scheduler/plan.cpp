#include "scheduler/plan.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <tuple>

namespace everstep::scheduler {
namespace {

// What a worker has in memory, per block.
struct PlacedBlocks {
  std::vector<bool> weights;
  std::vector<bool> owner_state;
};

void add_stage(std::vector<bool>& blocks, const Cuts& cuts, int stage) {
  std::fill(blocks.begin() + cuts[stage], blocks.begin() + cuts[stage + 1], true);
}

PlacedBlocks placed_on_device(const Plan& plan, const Placement& placement, int device) {
  const auto blocks = static_cast<std::size_t>(plan.cuts.back());
  PlacedBlocks placed{std::vector<bool>(blocks), std::vector<bool>(blocks)};
  for (const int stage : placement.stages_on(device)) {
    add_stage(placed.weights, plan.cuts, stage);
    if (placement.owner_of(stage) == device) add_stage(placed.owner_state, plan.cuts, stage);
  }
  return placed;
}

std::vector<PlacedBlocks> placed_by_device(const Plan& plan) {
  const Placement placement = placement_of(plan);
  std::vector<PlacedBlocks> devices;
  for (int device = 0; device < plan.depth; ++device) devices.push_back(placed_on_device(plan, placement, device));
  return devices;
}

std::map<WorkerId, PlacedBlocks> placed_by_worker(const Plan& plan) {
  const std::vector<PlacedBlocks> devices = placed_by_device(plan);
  std::map<WorkerId, PlacedBlocks> workers;
  for (std::size_t i = 0; i < plan.workers.size(); ++i) workers[plan.workers[i]] = devices[i % plan.depth];
  const PlacedBlocks nothing{std::vector<bool>(plan.cuts.back()), std::vector<bool>(plan.cuts.back())};
  for (std::size_t stage = 0; stage < plan.guards.size(); ++stage) {
    for (const WorkerId& guard : plan.guards[stage]) {
      PlacedBlocks& placed = workers.try_emplace(guard, nothing).first->second;
      add_stage(placed.owner_state, plan.cuts, static_cast<int>(stage));
    }
  }
  return workers;
}

// Bytes of `wanted` that `held` has (or lacks). Owner state contains the weights.
std::int64_t overlap_bytes(const ModelProfile& profile, const PlacedBlocks& wanted, const PlacedBlocks& held,
                           bool lacking) {
  std::int64_t bytes = 0;
  for (std::size_t block = 0; block < profile.blocks.size(); ++block) {
    const std::int64_t parameters = profile.blocks[block].parameters;
    const bool has_weights = held.weights[block] || held.owner_state[block];
    if ((wanted.weights[block] || wanted.owner_state[block]) && has_weights != lacking) {
      bytes += parameters * profile.weight_bytes;
    }
    if (wanted.owner_state[block] && held.owner_state[block] != lacking) bytes += parameters * profile.optimizer_bytes;
  }
  return bytes;
}

struct Saving {
  std::int64_t bytes;
  int from;  // device in the previous plan
  int to;    // device in this plan
};

std::vector<Saving> savings(const ModelProfile& profile, const Plan& previous, const Plan& plan) {
  const std::vector<PlacedBlocks> before = placed_by_device(previous);
  const std::vector<PlacedBlocks> after = placed_by_device(plan);
  std::vector<Saving> all;
  for (int from = 0; from < previous.depth; ++from) {
    for (int to = 0; to < plan.depth; ++to) {
      all.push_back({overlap_bytes(profile, after[to], before[from], false), from, to});
    }
  }
  std::sort(all.begin(), all.end(), [](const Saving& a, const Saving& b) {
    return std::tuple(-a.bytes, a.from, a.to) < std::tuple(-b.bytes, b.from, b.to);
  });
  return all;
}

// In a plan that is being filled.
struct Seats {
  std::vector<std::deque<std::size_t>> free;  // by device, ascending

  explicit Seats(const Plan& plan) : free(plan.depth) {
    for (std::size_t seat = 0; seat < plan.workers.size(); ++seat) free[seat % plan.depth].push_back(seat);
  }
  std::size_t take(int device) {
    const std::size_t seat = free[device].front();
    free[device].pop_front();
    return seat;
  }
};

std::map<WorkerId, int> devices_of(const Plan& plan) {
  std::map<WorkerId, int> devices;
  for (std::size_t i = 0; i < plan.workers.size(); ++i) devices[plan.workers[i]] = static_cast<int>(i % plan.depth);
  return devices;
}

// Seats those who cannot sit anywhere, each where it sat if that will do, and takes them out of `workers`, as well as
// those whom there is no seat for: these are returned.
std::vector<WorkerId> seat_stragglers(Plan& plan, Seats& seats, std::vector<WorkerInfo>& workers, const Plan* previous,
                                      const Slowness& slowness) {
  const double fastest_device = *std::min_element(slowness.begin(), slowness.end());
  const std::map<WorkerId, int> before = previous != nullptr ? devices_of(*previous) : std::map<WorkerId, int>{};
  std::vector<WorkerInfo> by_speed = workers;
  std::stable_sort(by_speed.begin(), by_speed.end(), [&](const WorkerInfo& a, const WorkerInfo& b) {
    return std::tuple(-a.slowness, before.contains(a.id)) < std::tuple(-b.slowness, before.contains(b.id));
  });
  const std::size_t seatless = by_speed.size() - plan.workers.size();
  std::vector<WorkerId> left_out;
  for (const WorkerInfo& worker : by_speed) {
    if (worker.slowness <= fastest_device) break;
    if (left_out.size() < seatless) {
      left_out.push_back(worker.id);
      continue;
    }
    const auto found = before.find(worker.id);
    const auto rank = [&](int device) {
      return std::tuple(found == before.end() || found->second != device, slowness[device]);
    };
    int best = -1;
    for (int device = 0; device < plan.depth; ++device) {
      const bool possible = slowness[device] >= worker.slowness && !seats.free[device].empty();
      if (possible && (best < 0 || rank(device) < rank(best))) best = device;
    }
    EVERSTEP_CHECK(best >= 0, "devices that are planned to be faster than the workers there are");
    plan.workers[seats.take(best)] = worker.id;
  }
  std::erase_if(workers, [&](const WorkerInfo& worker) { return worker.slowness > fastest_device; });
  return left_out;
}

}  // namespace

Status check(const Plan& plan) {
  EVERSTEP_TRY(check(request_of(plan)));
  const auto placement = placement_of(request_of(plan));
  if (!placement) return placement.error();
  const bool consistent =
      (plan.lag == 0 || plan.kind == ScheduleKind::kClockwork) && plan.provisional >= 0 &&
      plan.pipelines == placement->pipelines() && std::ssize(plan.workers) == std::int64_t{plan.depth} * plan.width &&
      std::ssize(plan.cuts) == placement->stages() + 1 && plan.cuts.front() == 0 &&
      std::adjacent_find(plan.cuts.begin(), plan.cuts.end(), std::greater_equal<>()) == plan.cuts.end() &&
      (plan.guards.empty() || std::ssize(plan.guards) == placement->stages());
  if (consistent) return {};
  return invalid_argument("the plan " + describe(plan.kind, plan.depth, plan.pipelines, plan.width) +
                          " contradicts itself: workers, cuts or guards do not match its shape");
}

Placement placement_of(const Plan& plan) {
  auto placement = placement_of(request_of(plan));
  EVERSTEP_CHECK(placement.ok(), "a plan at a depth that its schedule does not have");
  return *std::move(placement);
}

ScheduleRequest request_of(const Plan& plan, std::int64_t first_window, int windows) {
  ScheduleRequest request = request_for(plan.kind, plan.depth, plan.pipelines);
  request.width = plan.width;
  request.window = plan.window;
  request.preload = plan.preload;
  request.lag = plan.lag;
  request.provisional = plan.provisional;
  request.first_window = first_window;
  request.windows = windows;
  return request;
}

Plan plan_of_group(const Plan& plan, int group) {
  Plan alone = plan;
  const auto first = plan.workers.begin() + std::ptrdiff_t{group} * plan.depth;
  alone.workers.assign(first, first + plan.depth);
  alone.width = 1;
  alone.spares.clear();
  alone.guards.clear();
  return alone;
}

std::string describe(ScheduleKind kind, int depth, int pipelines, int width) {
  return std::string(to_string(kind)) + " D=" + std::to_string(depth) + " P=" + std::to_string(pipelines) +
         " W=" + std::to_string(width);
}

void seat_workers(Plan& plan, const ModelProfile& profile, const std::vector<WorkerInfo>& workers, const Plan* previous,
                  const Slowness& slowness) {
  std::vector<WorkerInfo> in_order = workers;
  std::sort(in_order.begin(), in_order.end(),
            [](const WorkerInfo& a, const WorkerInfo& b) { return std::tie(a.host, a.id) < std::tie(b.host, b.id); });
  plan.workers.assign(static_cast<std::size_t>(plan.depth) * plan.width, WorkerId{});
  Seats seats(plan);
  std::vector<WorkerId> left_out;
  if (!slowness.empty()) left_out = seat_stragglers(plan, seats, in_order, previous, slowness);

  std::deque<WorkerId> unseated;
  if (previous != nullptr) {
    const std::map<WorkerId, int> device_before = devices_of(*previous);
    std::vector<std::deque<WorkerId>> from_device(previous->depth);
    for (const WorkerInfo& worker : in_order) {
      const auto device = device_before.find(worker.id);
      (device == device_before.end() ? unseated : from_device[device->second]).push_back(worker.id);
    }
    for (const Saving& saving : savings(profile, *previous, plan)) {
      std::deque<WorkerId>& alike = from_device[saving.from];
      while (!alike.empty() && !seats.free[saving.to].empty()) {
        plan.workers[seats.take(saving.to)] = alike.front();
        alike.pop_front();
      }
    }
    for (const std::deque<WorkerId>& left : from_device) unseated.insert(unseated.end(), left.begin(), left.end());
  } else {
    for (const WorkerInfo& worker : in_order) unseated.push_back(worker.id);
  }
  // Neighbours in the order become ring neighbours, so that most messages stay inside a host.
  for (std::size_t seat = 0; seat < plan.workers.size(); ++seat) {
    const auto device = static_cast<int>(seat % plan.depth);
    if (seats.free[device].empty() || seats.free[device].front() != seat) continue;
    plan.workers[seats.take(device)] = unseated.front();
    unseated.pop_front();
  }
  plan.spares.assign(unseated.begin(), unseated.end());
  plan.spares.insert(plan.spares.end(), left_out.begin(), left_out.end());
}

std::int64_t moved_bytes(const ModelProfile& profile, const Plan* previous, const Plan& next) {
  const PlacedBlocks nothing{std::vector<bool>(next.cuts.back()), std::vector<bool>(next.cuts.back())};
  const std::map<WorkerId, PlacedBlocks> before =
      previous != nullptr ? placed_by_worker(*previous) : std::map<WorkerId, PlacedBlocks>{};
  std::int64_t bytes = 0;
  for (const auto& [worker, wanted] : placed_by_worker(next)) {
    const auto held = before.find(worker);
    bytes += overlap_bytes(profile, wanted, held == before.end() ? nothing : held->second, true);
  }
  return bytes;
}

}  // namespace everstep::scheduler
