#include "tests/trainer/recovery/trained_state.h"

#include <array>
#include <utility>

namespace everstep::trainer {
namespace {

struct Kind {
  const char* name;
  Buffer StageState::*of_stage;
  std::string TrainedState::Block::*of_block;
};

constexpr std::array<Kind, 5> kKinds{{
    {"weights", &StageState::weights, &TrainedState::Block::weights},
    {"first moments", &StageState::first_moment, &TrainedState::Block::first_moment},
    {"second moments", &StageState::second_moment, &TrainedState::Block::second_moment},
    {"master", &StageState::master, &TrainedState::Block::master},
    {"gradients", &StageState::gradients, &TrainedState::Block::gradients},
}};

// The parameters of a block without the gaps between them.
std::string bytes_of(const StageLayout& layout, int block, const Buffer& whole) {
  const std::size_t element = whole.size / static_cast<std::size_t>(layout.elements);
  std::string bytes;
  for (const StageLayout::Entry& entry : layout.entries) {
    if (entry.block != block) continue;
    const Buffer part = whole.part(static_cast<std::size_t>(entry.offset) * element,
                                   static_cast<std::size_t>(entry.parameter.elements()) * element);
    const auto span = part.as<char>();
    bytes.append(span.begin(), span.end());
  }
  return bytes;
}

std::string describe(const Kind& kind, std::size_t block) {
  return std::string(kind.name) + " of block " + std::to_string(block);
}

Status join(const StagedStage& stage, TrainedState& into) {
  for (int block = stage.layout.first_block; block < stage.layout.end_block; ++block) {
    for (const Kind& kind : kKinds) {
      const Buffer& whole = stage.state.*kind.of_stage;
      if (whole.empty()) continue;
      std::string bytes = bytes_of(stage.layout, block, whole);
      std::string& known = into.blocks[static_cast<std::size_t>(block)].*kind.of_block;
      if (known.empty())
        known = std::move(bytes);
      else if (known != bytes) {
        return Error{ErrorCode::kInternal, "two workers hold different " + describe(kind, block), ""};
      }
    }
  }
  return {};
}

}  // namespace

Result<TrainedState> joined(const std::vector<EndState>& states, const ModelConfig& model) {
  TrainedState state;
  state.blocks.resize(static_cast<std::size_t>(model.blocks()));
  for (const EndState& one : states) {
    if (one.resume != states.front().resume) return Error{ErrorCode::kInternal, "two workers tell different pasts", ""};
    for (const StagedStage& stage : one.stages) EVERSTEP_TRY(join(stage, state));
  }
  state.position = states.front().resume.position;
  state.applied = states.front().resume.applied;
  return state;
}

TrainedState state_of(const ReferenceRun& reference, int window) {
  TrainedState state;
  state.position = reference.position();
  state.applied = reference.applied();
  for (int block = 0; block < reference.blocks(); ++block) {
    TrainedState::Block& made = state.blocks.emplace_back();
    StageState all = reference.state(block);
    if (reference.position().value % window == 0) all.gradients = {};  // zero, and held by nobody
    for (const Kind& kind : kKinds) {
      if (!(all.*kind.of_stage).empty()) {
        made.*kind.of_block = bytes_of(reference.layout(block), block, all.*kind.of_stage);
      }
    }
  }
  return state;
}

std::string difference_between(const TrainedState& expected, const TrainedState& other) {
  if (expected.position != other.position) {
    return "position " + std::to_string(other.position.value) + " instead of " +
           std::to_string(expected.position.value);
  }
  if (expected.applied != other.applied) return "another number of updates";
  for (std::size_t block = 0; block < expected.blocks.size(); ++block) {
    for (const Kind& kind : kKinds) {
      if (expected.blocks[block].*kind.of_block != other.blocks[block].*kind.of_block) return describe(kind, block);
    }
  }
  return {};
}

}  // namespace everstep::trainer
