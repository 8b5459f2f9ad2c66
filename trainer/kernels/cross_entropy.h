#pragma once

#include "trainer/kernels/host_device.h"

namespace everstep::trainer::kernels {

inline constexpr std::int64_t kNoLabel = -100;  // such a row counts not

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

// Makes the logits' gradient of the probabilities that stand in its place. The exponentials themselves are LibTorch's
// on every device: they are no promise of equal bits.
struct EntropyGradient {
  float* gradient;  // [rows, classes]: probabilities before
  const std::int64_t* labels;
  std::int64_t classes;
  float scale;

  // The classes first, first + stride, … of a row.
  EVERSTEP_HOST_DEVICE void operator()(std::int64_t row, std::int64_t first, std::int64_t stride) const {
    const std::int64_t label = labels[row];
    const float counts = label == kNoLabel ? 0.0F : 1.0F;
    float* const values = gradient + row * classes;
    for (std::int64_t i = first; i < classes; i += stride) {
      const float error = i == label ? values[i] - 1.0F : values[i];
      values[i] = error * counts * scale;
    }
  }
};

}  // namespace everstep::trainer::kernels
