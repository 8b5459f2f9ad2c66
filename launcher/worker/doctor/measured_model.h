#pragma once

#include "launcher/job/device_options.h"
#include "trainer/model/model_config.h"

namespace everstep::launcher {

// What `everstep doctor` trains to compare speed and memory with what the planner says: on GPUs of CUDA GPT-2 small in
// bf16, elsewhere a smaller gpt2-tiny.
trainer::ModelConfig measured_model(const DeviceName& device);
inline constexpr trainer::Accumulation kMeasuredAccumulation = trainer::Accumulation::kFixedPoint;

// The text that it trains on, in the directory that the doctor has for its files.
inline constexpr const char* kDoctorText = "corpus.txt";

}  // namespace everstep::launcher
