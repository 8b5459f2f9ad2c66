#include "trainer/recovery/state_transfer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <string>
#include <utility>

#include "trainer/recovery/owner_state.h"
#include "trainer/recovery/resume_wire.h"
#include "trainer/update/piece_transfer.h"
#include "trainer/update/sums.h"

namespace everstep::trainer {
namespace {

using Tensors = MovedState::Tensors;

// One kind of buffer: where it lies in a stage's state and in a block's, and what it belongs to.
struct TensorKind {
  BlockPart part;
  Buffer StageState::*of_stage;
  Buffer Tensors::*of_block;
};

constexpr std::array<TensorKind, 5> kKinds{{
    {BlockPart::kWeights, &StageState::weights, &Tensors::weights},
    {BlockPart::kOptimizer, &StageState::first_moment, &Tensors::first_moment},
    {BlockPart::kOptimizer, &StageState::second_moment, &Tensors::second_moment},
    {BlockPart::kOptimizer, &StageState::master, &Tensors::master},
    {BlockPart::kGradients, &StageState::gradients, &Tensors::gradients},
}};

// Bytes [begin, begin + size) of a stage's flat buffer that belong to one of its blocks. A block looks the same inside
// every stage, since each parameter is aligned for itself.
Buffer block_part(const StageLayout& layout, int block, const Buffer& whole) {
  const auto starts_at = [&](int wanted) {
    const auto entry = std::find_if(layout.entries.begin(), layout.entries.end(),
                                    [&](const StageLayout::Entry& each) { return each.block >= wanted; });
    return entry == layout.entries.end() ? layout.elements : entry->offset;
  };
  const std::size_t element = whole.size / static_cast<std::size_t>(layout.elements);
  return whole.part(starts_at(block) * element, (starts_at(block + 1) - starts_at(block)) * element);
}

// What this worker brings, in whichever form it was kept.
struct Brought {
  const ResumePoint& resume;
  std::vector<StagedStage> stages;
};

std::optional<Brought> brought_by(const EndState* end_state) {
  if (end_state == nullptr) return std::nullopt;
  return Brought{end_state->resume, end_state->stages};
}

std::optional<Brought> brought_by(const CopiedState* copies) {
  if (copies == nullptr) return std::nullopt;
  Brought brought{copies->resume, {}};
  const auto add = [&](const std::vector<StagedStage>& stages, bool is_complete) {
    if (is_complete) brought.stages.insert(brought.stages.end(), stages.begin(), stages.end());
  };
  add(copies->owned, copies->complete.owned);
  add(copies->guarded, copies->complete.guarded);
  return brought;
}

class Move {
 public:
  Move(Transport& transport, const TransferJob& job, std::optional<Brought> brought)
      : transport_(transport), job_(job), brought_(std::move(brought)), holders_(numbers_of_holders(job.change)) {}

  Result<MovedState> run() {
    const auto moves = plan_transfer(job_.change, job_.model);
    if (!moves) return moves.error();
    EVERSTEP_TRY(check_brought());
    EVERSTEP_TRY(learn_where_to_go_on());
    for (const BlockMove& move : *moves) {
      if (move.to == transport_.worker()) {
        EVERSTEP_TRY(move.from == move.to ? take(move) : receive(move));
      } else if (move.from == transport_.worker()) {
        EVERSTEP_TRY(send(move));
      }
    }
    for (PieceReceiver& receiver : receivers_) EVERSTEP_TRY(receiver.finish(job_.timeout));
    if (transport_.worker() >= job_.change.after.workers()) EVERSTEP_TRY(transport_.flush(job_.timeout));
    return std::move(moved_);
  }

 private:
  FrameHeader header_of(FrameKind kind) const {
    FrameHeader header;
    header.lineage = job_.lineage;
    header.generation = job_.generation;
    header.kind = kind;
    header.window = job_.position.value;
    return header;
  }

  FrameHeader header_of(const BlockMove& move, std::size_t kind) const {
    FrameHeader header = header_of(FrameKind::kState);
    header.stage = move.block;
    header.minibatch = static_cast<std::int32_t>(kind);
    return header;
  }

  bool holds(int worker) const { return std::binary_search(holders_.begin(), holders_.end(), worker); }

  Status check_brought() const {
    EVERSTEP_CHECK(holds(transport_.worker()) == brought_.has_value(),
                   "a holder brings what it holds, and nobody else does");
    if (!brought_ || brought_->resume.position == job_.position) return {};
    return Error{ErrorCode::kInternal,
                 "this worker holds the state at minibatch " + std::to_string(brought_->resume.position.value) +
                     ", but the job goes on at " + std::to_string(job_.position.value),
                 ""};
  }

  // The holder with the lowest number tells those who hold nothing. After a failure holders may know differently much
  // of what was committed: it tells all then.
  Status learn_where_to_go_on() {
    if (brought_) moved_.resume = brought_->resume;
    const auto is_told = [&](int worker) {
      return worker != holders_.front() && (job_.change.copies || job_.change.is_group_sums || !holds(worker));
    };
    const FrameHeader header = header_of(FrameKind::kResume);
    for (int worker = 0; worker < transport_.workers() && transport_.worker() == holders_.front(); ++worker) {
      if (is_told(worker)) send_resume(transport_, worker, header, moved_.resume);
    }
    if (!is_told(transport_.worker())) return {};
    auto resume = receive_resume(transport_, holders_.front(), header, job_.timeout);
    if (!resume) return resume.error();
    if (resume->position != job_.position) {
      return Error{ErrorCode::kInternal, "another place to go on from than the job's", ""};
    }
    moved_.resume = *std::move(resume);
    return {};
  }

  std::size_t element_bytes(const TensorKind& kind) const {
    return kind.part == BlockPart::kGradients ? sum_bytes(job_.accumulation)
                                              : owner_element_bytes(kind.of_stage, job_.model);
  }

  // Empty if this worker does not have it, which the plan before says it has.
  Buffer brought_part(const BlockMove& move, const TensorKind& kind) const {
    for (const StagedStage& stage : brought_->stages) {
      const Buffer& whole = stage.state.*kind.of_stage;
      if (stage.layout.first_block <= move.block && move.block < stage.layout.end_block && !whole.empty()) {
        return block_part(stage.layout, move.block, whole);
      }
    }
    return {};
  }

  // Calls visit(index, kind, bytes) for every buffer of the part.
  Status for_each_tensor(const BlockMove& move, auto visit) const {
    const auto elements = static_cast<std::size_t>(layout_of(job_.model, move.block, move.block + 1).elements);
    for (std::size_t index = 0; index < kKinds.size(); ++index) {
      const std::size_t bytes = elements * element_bytes(kKinds[index]);
      if (kKinds[index].part == move.part && bytes > 0) EVERSTEP_TRY(visit(index, kKinds[index], bytes));
    }
    return {};
  }

  Result<Buffer> own(const BlockMove& move, const TensorKind& kind, std::size_t bytes) const {
    Buffer part = brought_part(move, kind);
    if (part.size == bytes) return part;
    return Error{ErrorCode::kInternal,
                 "this worker does not hold the " + std::string(to_string(move.part)) + " of block " +
                     std::to_string(move.block) + ", which the plan before gave to it",
                 ""};
  }

  Status take(const BlockMove& move) {
    return for_each_tensor(move, [&](std::size_t, const TensorKind& kind, std::size_t bytes) -> Status {
      auto part = own(move, kind, bytes);
      if (!part) return part.error();
      moved_.blocks[move.block].*kind.of_block = *std::move(part);
      return {};
    });
  }

  Status send(const BlockMove& move) {
    return for_each_tensor(move, [&](std::size_t index, const TensorKind& kind, std::size_t bytes) -> Status {
      const auto part = own(move, kind, bytes);
      if (!part) return part.error();
      send_in_pieces(transport_, move.to, header_of(move, index), *part);
      return {};
    });
  }

  Status receive(const BlockMove& move) {
    return for_each_tensor(move, [&](std::size_t index, const TensorKind& kind, std::size_t bytes) -> Status {
      Buffer& into = moved_.blocks[move.block].*kind.of_block;
      into = allocate_scratch(bytes);
      receivers_.emplace_back(transport_, move.from, header_of(move, index), into);
      moved_.received_bytes += static_cast<std::int64_t>(bytes);
      return {};
    });
  }

  Transport& transport_;
  const TransferJob& job_;
  const std::optional<Brought> brought_;
  const std::vector<int> holders_;
  MovedState moved_;
  std::deque<PieceReceiver> receivers_;
};

}  // namespace

Result<MovedState> move_state(Transport& transport, const TransferJob& job, const EndState* end_state) {
  EVERSTEP_CHECK(!job.change.copies, "an origin in copies");
  return Move(transport, job, brought_by(end_state)).run();
}

Result<MovedState> move_state(Transport& transport, const TransferJob& job, const CopiedState* copies) {
  EVERSTEP_CHECK(job.change.copies, "an origin that is not in copies");
  return Move(transport, job, brought_by(copies)).run();
}

Status restore_from(const MovedState& moved, const StageLayout& layout, const StageState& state) {
  for (const TensorKind& kind : kKinds) {
    const Buffer& whole = state.*kind.of_stage;
    if (whole.empty()) continue;
    for (int block = layout.first_block; block < layout.end_block; ++block) {
      const Buffer target = block_part(layout, block, whole);
      const auto found = moved.blocks.find(block);
      if (found == moved.blocks.end() || (found->second.*kind.of_block).size != target.size) {
        return Error{
            ErrorCode::kInternal,
            "the " + std::string(to_string(kind.part)) + " of block " + std::to_string(block) + " did not come here",
            ""};
      }
      std::memcpy(target.data, (found->second.*kind.of_block).data, target.size);
    }
  }
  return {};
}

}  // namespace everstep::trainer
