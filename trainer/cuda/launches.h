#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "trainer/kernels/adamw.h"
#include "trainer/kernels/bf16.h"
#include "trainer/kernels/dropout.h"

// Launches the kernels of the operators on a stream, for memory of its device. Whoever calls has made the device
// current, and asks CUDA afterwards whether the launch succeeded. Nothing here waits. Arguments are trusted.
namespace everstep::trainer::cuda {

void add_sums(float* sums, const float* addends, std::int64_t count, cudaStream_t stream);
void add_sums(std::uint64_t* sums, const std::uint64_t* addends, std::int64_t count, cudaStream_t stream);

void add_fixed_point(std::int64_t* sums, const float* values, std::int64_t count, float limit, std::uint8_t* overflow,
                     cudaStream_t stream);

struct FixedPointRows {
  std::int64_t* sums;
  const std::int64_t* index;
  const float* rows;
  const float* limits;
  std::int64_t count;  // of rows
  std::int64_t width;
};
void add_fixed_point_rows(const FixedPointRows& rows, std::uint8_t* overflow, cudaStream_t stream);

template <typename Sum>
struct AdamWState {
  float* master;
  float* first;
  float* second;
  Sum* sums;
  std::int64_t count;
};
void adamw(const kernels::AdamWConstants& constants, const AdamWState<float>& state, cudaStream_t stream);
void adamw(const kernels::AdamWConstants& constants, const AdamWState<std::int64_t>& state, cudaStream_t stream);

// What the step would make of the weights; of a weight for which that is no number: the weight.
template <typename Sum, typename Weight>
struct AdamWTrialState {
  const float* master;
  const float* first;
  const float* second;
  const Sum* sums;
  Weight* weights;
  std::int64_t count;
};
void adamw_trial(const kernels::AdamWConstants& constants, const AdamWTrialState<float, float>& state,
                 cudaStream_t stream);
void adamw_trial(const kernels::AdamWConstants& constants, const AdamWTrialState<float, kernels::Bf16>& state,
                 cudaStream_t stream);
void adamw_trial(const kernels::AdamWConstants& constants, const AdamWTrialState<std::int64_t, float>& state,
                 cudaStream_t stream);
void adamw_trial(const kernels::AdamWConstants& constants, const AdamWTrialState<std::int64_t, kernels::Bf16>& state,
                 cudaStream_t stream);

void round_to_bf16(std::uint16_t* weights, const float* master, std::int64_t count, cudaStream_t stream);

// `chunks` is scratch for kernels::sum_chunks(count) numbers.
void sum_of_squares(double* sum, const float* sums, std::int64_t count, double* chunks, cudaStream_t stream);
void sum_of_squares(double* sum, const std::int64_t* sums, std::int64_t count, double* chunks, cudaStream_t stream);

void note_not_finite(std::uint8_t* flag, const std::uint32_t* numbers, std::int64_t count, cudaStream_t stream);
void note_not_finite(std::uint8_t* flag, const std::uint16_t* numbers, std::int64_t count, cudaStream_t stream);

// `bytes` is aligned to eight.
void hash(std::uint64_t* hash, const std::uint8_t* bytes, std::int64_t size, cudaStream_t stream);
void swap(std::uint8_t* left, std::uint8_t* right, std::int64_t size, cudaStream_t stream);

void gelu(float* value, const float* input, std::int64_t count, cudaStream_t stream);
void gelu(kernels::Bf16* value, const kernels::Bf16* input, std::int64_t count, cudaStream_t stream);

template <typename T>
struct GeluTensors {
  T* value;
  T* input_gradient;
  const T* input;
  const T* output_gradient;
  std::int64_t count;
};
void gelu_backward(const GeluTensors<float>& tensors, cudaStream_t stream);
void gelu_backward(const GeluTensors<kernels::Bf16>& tensors, cudaStream_t stream);

void dropout(const kernels::Dropout<float>& dropout, cudaStream_t stream);
void dropout(const kernels::Dropout<kernels::Bf16>& dropout, cudaStream_t stream);

struct Logits {
  const std::int64_t* labels;
  std::int64_t rows;
  std::int64_t classes;
};
void cross_entropy(float* loss, const float* log_probabilities, const Logits& logits, cudaStream_t stream);
void cross_entropy_backward(float* gradient, const float* log_probabilities, const Logits& logits, double weight,
                            cudaStream_t stream);

}  // namespace everstep::trainer::cuda
