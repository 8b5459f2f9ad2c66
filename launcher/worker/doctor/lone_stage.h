#pragma once

#include <filesystem>
#include <memory>

#include "trainer/model/data_source.h"
#include "trainer/model/stage_compute.h"

namespace everstep::launcher {

// The text that the doctor has written there.
Result<std::unique_ptr<trainer::DataSource>> open_doctor_data(const std::filesystem::path& directory,
                                                              const trainer::ModelConfig& model);

// The parity of all that a LoneStage runs: it has one sum.
inline constexpr int kOneSum = 0;

// Some blocks of a model with initial weights, alone: nobody else has a part of it. `data` and `memory` outlive it.
class LoneStage {
 public:
  LoneStage(const trainer::ModelConfig& model, int first_block, int end_block, trainer::Accumulation accumulation,
            const trainer::DataSource& data, trainer::DeviceMemory& memory);

  trainer::StageCompute& compute() { return *compute_; }
  const trainer::ChunkMemory& memory() const { return request_.memory; }

 private:
  trainer::StageRequest request_;
  std::unique_ptr<trainer::StageCompute> compute_;
};

}  // namespace everstep::launcher
