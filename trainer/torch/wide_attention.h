#pragma once

#include <cstdint>

namespace everstep::trainer {

// Attention of one head over one sequence, in fp32 on a CPU that has_wide_product().
struct HeadShape {
  std::int64_t length = 0;  // tokens
  std::int64_t size = 0;    // numbers per token
  bool causal = false;
  const float* mask = nullptr;  // added to the scores of each key, if there is one
};

// A head's numbers: those of token t are data[t · step] to data[t · step + size - 1].
struct HeadInputs {
  const float* query = nullptr;
  const float* key = nullptr;
  const float* value = nullptr;
  std::int64_t step = 0;
};

struct HeadOutput {
  float* value = nullptr;
  std::int64_t step = 0;
  float* log_sums = nullptr;  // for each token the logarithm of the sum that its probabilities were divided by
};

void wide_attention(const HeadShape& shape, const HeadInputs& inputs, const HeadOutput& output);

struct HeadGradients {
  float* query = nullptr;
  float* key = nullptr;
  float* value = nullptr;
  std::int64_t step = 0;
};

// What the forward made, and the gradient of its output, which has the output's step.
struct HeadResults {
  const float* value = nullptr;
  const float* gradient = nullptr;
  std::int64_t step = 0;
  const float* log_sums = nullptr;
};

void wide_attention_backward(const HeadShape& shape, const HeadInputs& inputs, const HeadResults& results,
                             const HeadGradients& gradients);

}  // namespace everstep::trainer
