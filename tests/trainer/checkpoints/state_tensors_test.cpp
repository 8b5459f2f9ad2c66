#include "trainer/checkpoints/state_tensors.h"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/update/sums.h"

namespace everstep::trainer {
namespace {

using storage::ElementType;
using storage::StateKind;

ModelConfig model_of(scheduler::ModelFamily family, Precision precision) {
  ModelConfig model;
  model.shape = {"test", family, 3, 8, 2, 4, 16};
  model.precision = precision;
  return model;
}

// All buffers of a stage; the byte tells which buffer it is.
StageState full_state(const ModelConfig& model, Accumulation accumulation, const StageLayout& layout) {
  StageState state;
  int mark = 0;
  const auto fill = [&](Buffer& buffer, std::size_t width) {
    buffer = allocate_zeroed(layout.elements * width);
    for (std::byte& byte : buffer.as<std::byte>()) byte = static_cast<std::byte>(mark);
    ++mark;
  };
  fill(state.weights, model.weight_bytes());
  fill(state.previous, model.weight_bytes());
  fill(state.first_moment, 4);
  fill(state.second_moment, 4);
  if (model.precision == Precision::kBf16) fill(state.master, 4);
  fill(state.gradients, sum_bytes(accumulation));
  return state;
}

TEST(StateTensors, CoverEveryParameterOfEveryKindOnce) {
  for (const auto family : {scheduler::ModelFamily::kGpt, scheduler::ModelFamily::kBert}) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
      const ModelConfig model = model_of(family, precision);
      const StageLayout layout = layout_of(model, 1, 5);
      const StageState state = full_state(model, Accumulation::kFixedPoint, layout);
      std::set<std::pair<StateKind, std::string>> names;
      std::set<const std::byte*> places;
      std::size_t bytes = 0;
      for (const StateTensor& tensor : state_tensors(model, Accumulation::kFixedPoint, layout, state)) {
        EXPECT_TRUE(check(tensor.stored.tensor).ok()) << tensor.stored.tensor.name;
        EXPECT_TRUE(names.emplace(tensor.stored.kind, tensor.stored.tensor.name).second) << tensor.stored.tensor.name;
        EXPECT_TRUE(places.insert(tensor.bytes.data()).second);
        EXPECT_EQ(tensor.bytes.size(), tensor.stored.tensor.bytes());
        bytes += tensor.bytes.size();
      }
      std::size_t elements = 0;
      for (const StageLayout::Entry& entry : layout.entries) elements += entry.parameter.elements();
      const std::size_t per_element = 2 * model.weight_bytes() + 8 + (precision == Precision::kBf16 ? 4 : 0) + 8;
      EXPECT_EQ(bytes, elements * per_element);
    }
  }
}

TEST(StateTensors, LeaveOutWhatIsEmpty) {
  const ModelConfig model = model_of(scheduler::ModelFamily::kGpt, Precision::kFp32);
  const StageLayout layout = layout_of(model, 0, 2);
  StageState state;
  state.weights = allocate_zeroed(layout.elements * 4);
  for (const StateTensor& tensor : state_tensors(model, Accumulation::kFloat, layout, state)) {
    EXPECT_EQ(tensor.stored.kind, StateKind::kWeights);
    EXPECT_EQ(tensor.stored.tensor.type, ElementType::kFloat32);
  }
}

TEST(BlockStates, AreOneFilePerBlockAndKindWithItsVersion) {
  const ModelConfig model = model_of(scheduler::ModelFamily::kGpt, Precision::kFp32);
  StagedCut cut;
  cut.kind = CutKind::kLive;
  cut.position = {70};
  cut.version = {7};
  cut.nonce = 5;
  for (const auto& [first, end] : {std::pair(0, 2), std::pair(4, 5)}) {
    const StageLayout layout = layout_of(model, first, end);
    StageState state = full_state(model, Accumulation::kFloat, layout);
    state.gradients = {};
    cut.stages.push_back({first, layout, state});
  }
  std::map<std::pair<int, StateKind>, int> files;
  for (const storage::BlockState& file : block_states(model, Accumulation::kFloat, cut, Generation{3})) {
    ++files[{file.record.block, file.record.kind}];
    EXPECT_EQ(file.record.version.value, file.record.kind == StateKind::kPrevious ? 6 : 7);
    EXPECT_EQ(file.record.written_by, (storage::CheckpointName{Generation{3}, Position{70}, 5}));
    EXPECT_EQ(file.record.tensors.size(), file.tensors.size());
  }
  EXPECT_EQ(files.size(), 9U);  // three blocks, three kinds
  for (const auto& [file, count] : files) EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace everstep::trainer
