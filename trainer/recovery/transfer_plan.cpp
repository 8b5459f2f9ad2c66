#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "trainer/recovery/state_transfer.h"
#include "trainer/update/gradient_reduction.h"

namespace everstep::trainer {
namespace {

constexpr std::array<BlockPart, 3> kParts{BlockPart::kWeights, BlockPart::kOptimizer, BlockPart::kGradients};

// Who has which part of a block under one plan.
class BlockPlaces {
 public:
  static Result<BlockPlaces> make(const PlanShape& shape, int blocks) {
    const scheduler::ScheduleRequest& request = shape.schedule;
    auto placement = placement_of(request);
    if (!placement) return placement.error();
    const bool fits =
        std::ssize(shape.cuts) == placement->stages() + 1 && shape.cuts.front() == 0 && shape.cuts.back() == blocks;
    if (!fits) return invalid_argument("the cuts of a plan do not divide the model's blocks into its stages");
    return BlockPlaces(shape, *std::move(placement));
  }

  // Owners of all groups.
  std::vector<int> owners_of(int block) const { return workers_with(block, BlockPart::kOptimizer); }

  // Ascending.
  std::vector<int> workers_with(int block, BlockPart part) const {
    const int stage = stage_of(block);
    std::vector<int> workers;
    for (int group = 0; group < shape_.request.width; ++group) {
      for (const int device : shape_.placement.replicas_of(stage)) {
        if (has(group, device, stage, part)) workers.push_back(group * shape_.depth() + device);
      }
    }
    return workers;
  }

  int stage_of(int block) const {
    return static_cast<int>(std::upper_bound(cuts_.begin(), cuts_.end(), block) - cuts_.begin()) - 1;
  }

  int stages() const { return shape_.placement.stages(); }

 private:
  BlockPlaces(const PlanShape& shape, scheduler::Placement placement)
      : shape_{shape.schedule, std::move(placement), {}, {}}, cuts_(shape.cuts) {}

  bool has(int group, int device, int stage, BlockPart part) const {
    if (part == BlockPart::kWeights) return true;
    const bool owns = shape_.placement.owner_of(stage) == device;
    return owns && (part == BlockPart::kOptimizer || group == root_group_of(shape_, stage));
  }

  scheduler::Schedule shape_;  // who is where: without lists
  scheduler::Cuts cuts_;
};

// Workers of the plan before that had the part. Of an origin in copies, owners and guards have all there is.
std::vector<int> workers_with(const TransferRequest& request, const BlockPlaces& before, int block, BlockPart part) {
  if (!request.copies) return before.workers_with(block, part);
  std::vector<int> workers;
  for (const int owner : before.owners_of(block)) {
    if (request.copies->complete[owner].owned) workers.push_back(owner);
  }
  for (const int guard : request.copies->guards[before.stage_of(block)]) {
    if (request.copies->complete[guard].guarded) workers.push_back(guard);
  }
  return workers;
}

std::vector<int> still_there(const std::vector<int>& workers, const std::vector<int>& numbers) {
  std::vector<int> alive;
  for (const int worker : workers) {
    if (numbers[worker] >= 0) alive.push_back(numbers[worker]);
  }
  std::sort(alive.begin(), alive.end());
  return alive;
}

Error nobody_has(int block, BlockPart part) {
  return {ErrorCode::kUnavailable,
          "no worker is left that holds the " + std::string(to_string(part)) + " of block " + std::to_string(block),
          "the newest committed checkpoint has them"};
}

}  // namespace

std::string_view to_string(BlockPart part) {
  constexpr std::array<std::string_view, 3> kNames{"weights", "optimizer state", "gradients"};
  return kNames[static_cast<std::size_t>(part)];
}

std::vector<int> numbers_of_holders(const TransferRequest& change) {
  std::vector<int> with_any;
  for (int worker = 0; worker < change.before.workers(); ++worker) {
    if (!change.copies || change.copies->complete[worker] != CopyParts{}) with_any.push_back(worker);
  }
  return still_there(with_any, change.holders);
}

Result<std::vector<BlockMove>> plan_transfer(const TransferRequest& request, const ModelConfig& model) {
  const auto before = BlockPlaces::make(request.before, model.blocks());
  if (!before) return before.error();
  const auto after = BlockPlaces::make(request.after, model.blocks());
  if (!after) return after.error();
  const int workers_before = request.before.workers();
  EVERSTEP_CHECK(std::ssize(request.holders) == workers_before, "one number per worker of the plan before");
  EVERSTEP_CHECK(!request.copies || (std::ssize(request.copies->complete) == workers_before && !request.inside_window &&
                                     std::ssize(request.copies->guards) == before->stages()),
                 "copies of another plan, or inside a window");
  std::map<int, std::int64_t> sent;  // elements, by holder
  std::vector<BlockMove> moves;
  for (int block = 0; block < model.blocks(); ++block) {
    const std::int64_t elements = layout_of(model, block, block + 1).elements;
    for (const BlockPart part : kParts) {
      if (part == BlockPart::kGradients && !request.inside_window && !request.is_group_sums) continue;
      const std::vector<int> holders = still_there(workers_with(request, *before, block, part), request.holders);
      if (holders.empty()) return nobody_has(block, part);
      for (const int to : after->workers_with(block, part)) {
        if (std::binary_search(holders.begin(), holders.end(), to)) {
          moves.push_back({block, part, to, to});
          continue;
        }
        const int from =
            *std::min_element(holders.begin(), holders.end(), [&](int a, int b) { return sent[a] < sent[b]; });
        sent[from] += elements;
        moves.push_back({block, part, from, to});
      }
    }
  }
  return moves;
}

}  // namespace everstep::trainer
