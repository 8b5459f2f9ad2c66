#pragma once

#include "trainer/kernels/exponential.h"

namespace everstep::trainer::kernels {

inline constexpr std::int64_t kNoLabel = -100;  // such a row does not count

// Term of the loss, for ordered_sum(): of one row. Labels are below `classes` or kNoLabel; nobody checks here.
struct EntropyTerm {
  const float* log_probabilities;  // [rows, classes]
  const std::int64_t* labels;
  std::int64_t classes;

  EVERSTEP_HOST_DEVICE double operator()(std::int64_t row) const {
    const std::int64_t label = labels[row];
    return label == kNoLabel ? 0.0 : -static_cast<double>(log_probabilities[row * classes + label]);
  }
};

// How many of the rows first, first + stride, … have a label.
EVERSTEP_HOST_DEVICE std::int64_t count_labels(const std::int64_t* labels, std::int64_t rows, std::int64_t first,
                                               std::int64_t stride) {
  std::int64_t count = 0;
  for (std::int64_t row = first; row < rows; row += stride) count += labels[row] == kNoLabel ? 0 : 1;
  return count;
}

// 0 if nothing is labelled.
EVERSTEP_HOST_DEVICE float mean_entropy(double sum, std::int64_t labelled) {
  return labelled == 0 ? 0.0F : static_cast<float>(sum / static_cast<double>(labelled));
}

// What every element of the gradient is multiplied by, where the loss counts with `weight`.
EVERSTEP_HOST_DEVICE float entropy_scale(double weight, std::int64_t labelled) {
  return static_cast<float>(weight / static_cast<double>(labelled == 0 ? 1 : labelled));
}

// The gradient of one row's logits, for the classes first, first + stride, …: each probability, less 1 at the label,
// times `scale`; 0 if the row has no label.
EVERSTEP_HOST_DEVICE void entropy_gradient_of_row(const float* __restrict log_probabilities, float* __restrict gradient,
                                                  std::int64_t classes, std::int64_t label, float scale,
                                                  std::int64_t first, std::int64_t stride) {
  const float factor = label == kNoLabel ? 0.0F : scale;
  for (std::int64_t i = first; i < classes; i += stride) gradient[i] = probability(log_probabilities[i]) * factor;
  const bool has_label = label >= first && (label - first) % stride == 0;
  if (has_label) gradient[label] = (probability(log_probabilities[label]) - 1.0F) * factor;
}

struct EntropyGradient {
  const float* log_probabilities;  // [rows, classes]
  const std::int64_t* labels;
  float* gradient;  // [rows, classes]
  std::int64_t classes;
  float scale;

  // By one of `stride` threads.
  EVERSTEP_HOST_DEVICE void operator()(std::int64_t row, std::int64_t first, std::int64_t stride) const {
    entropy_gradient_of_row(log_probabilities + row * classes, gradient + row * classes, classes, labels[row], scale,
                            first, stride);
  }
};

}  // namespace everstep::trainer::kernels
