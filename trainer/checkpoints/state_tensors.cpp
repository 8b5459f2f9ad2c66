#include "trainer/checkpoints/state_tensors.h"

#include <string>
#include <utility>

namespace everstep::trainer {
namespace {

using storage::ElementType;
using storage::StateKind;

// One buffer of a stage's state, and what its tensors are called.
struct Part {
  StateKind kind;
  std::string_view group;  // before the parameter's name
  ElementType type;
  const Buffer& buffer;
};

std::vector<Part> parts_of(const ModelConfig& model, Accumulation accumulation, const StageState& state) {
  const ElementType weight = model.precision == Precision::kBf16 ? ElementType::kBfloat16 : ElementType::kFloat32;
  const ElementType sum = accumulation == Accumulation::kFloat ? ElementType::kFloat32 : ElementType::kInt64;
  return {
      {StateKind::kWeights, "", weight, state.weights},
      {StateKind::kPrevious, "", weight, state.previous},
      {StateKind::kOptimizer, "first_moment/", ElementType::kFloat32, state.first_moment},
      {StateKind::kOptimizer, "second_moment/", ElementType::kFloat32, state.second_moment},
      {StateKind::kOptimizer, "master/", ElementType::kFloat32, state.master},
      {StateKind::kGradients, "", sum, state.gradients},
      {StateKind::kProvisional, "", weight, state.provisional},
  };
}

Version version_of(const StagedCut& cut, StateKind kind) {
  const bool is_of_before = kind == StateKind::kPrevious || kind == StateKind::kProvisional;
  return {cut.version.value - (is_of_before ? 1 : 0)};
}

}  // namespace

std::vector<StateTensor> state_tensors(const ModelConfig& model, Accumulation accumulation, const StageLayout& layout,
                                       const StageState& state) {
  const std::vector<Part> parts = parts_of(model, accumulation, state);
  std::vector<StateTensor> tensors;
  for (int block = layout.first_block; block < layout.end_block; ++block) {
    for (const Part& part : parts) {
      if (part.buffer.empty()) continue;
      const std::size_t width = storage::bytes_of(part.type);
      for (const StageLayout::Entry& entry : layout.entries) {
        if (entry.block != block) continue;
        const std::string name = std::string(part.group) + entry.parameter.name;
        const Buffer bytes = part.buffer.part(entry.offset * width, entry.parameter.elements() * width);
        tensors.push_back({{block, part.kind, {name, part.type, entry.parameter.shape}}, bytes.as<std::byte>()});
      }
    }
  }
  return tensors;
}

std::vector<storage::BlockState> block_states(const ModelConfig& model, Accumulation accumulation, const StagedCut& cut,
                                              Generation generation) {
  std::vector<storage::BlockState> files;
  for (const StagedStage& stage : cut.stages) {
    for (StateTensor& tensor : state_tensors(model, accumulation, stage.layout, stage.state)) {
      const auto& [block, kind, spec] = tensor.stored;
      if (files.empty() || files.back().record.block != block || files.back().record.kind != kind) {
        storage::FileRecord& record = files.emplace_back().record;
        record.block = block;
        record.kind = kind;
        record.version = version_of(cut, kind);
        record.written_by = {generation, cut.position, cut.nonce};
      }
      files.back().record.tensors.push_back(spec);
      files.back().tensors.emplace_back(tensor.bytes);
    }
  }
  return files;
}

std::string_view accumulation_name(Accumulation accumulation) {
  return accumulation == Accumulation::kFloat ? "float32" : "fixed48";
}

}  // namespace everstep::trainer
