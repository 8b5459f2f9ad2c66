#include "trainer/torch/wide_attention.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "base/check.h"
#include "trainer/kernels/exponential.h"
#include "trainer/torch/wide_product.h"
#include "trainer/torch/wide_vector.h"

namespace everstep::trainer {

#ifdef __x86_64__
namespace {

constexpr std::int64_t kLanes = kWideLanes;
constexpr std::int64_t kQueries = 64;  // whose scores are in memory at a time

// Scores of some queries against all keys that they see, and of the gradient the same.
struct Scratch {
  std::vector<float> probabilities;
  std::vector<float> gradients;

  void make_room(std::int64_t length) {
    const auto room = static_cast<std::size_t>(kQueries * length);
    if (probabilities.size() < room) probabilities.resize(room);
    if (gradients.size() < room) gradients.resize(room);
  }
};

// Some queries of a head, and the keys that the last of them sees.
struct Queries {
  std::int64_t first;
  std::int64_t count;
  std::int64_t keys;
  std::int64_t keys_of_first;

  std::int64_t keys_of(std::int64_t i) const { return std::min(keys_of_first + i, keys); }
};

Queries queries_from(const HeadShape& shape, std::int64_t first) {
  const std::int64_t count = std::min(kQueries, shape.length - first);
  if (!shape.causal) return {first, count, shape.length, shape.length};
  return {first, count, first + count, first + 1};
}

FloatMatrix rows_of(const float* data, std::int64_t step, std::int64_t first, std::int64_t count, std::int64_t size) {
  return {data + first * step, count, size, step, 1};
}

FloatMatrix turned(const FloatMatrix& matrix) {
  return {matrix.data, matrix.columns, matrix.rows, matrix.column_step, matrix.row_step};
}

// In an order that no compiler chooses.
EVERSTEP_WIDE float sum_of_lanes(__m512 values) {
  alignas(64) float lanes[kLanes];
  _mm512_store_ps(lanes, values);
  for (std::int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::int64_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

EVERSTEP_WIDE float largest_of(const float* values, std::int64_t count) {
  __m512 largest = _mm512_set1_ps(values[0]);
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const __mmask16 present = first_lanes(count - i);
    largest = _mm512_mask_max_ps(largest, present, _mm512_maskz_loadu_ps(present, values + i), largest);
  }
  alignas(64) float lanes[kLanes];
  _mm512_store_ps(lanes, largest);
  return *std::max_element(std::begin(lanes), std::end(lanes));
}

EVERSTEP_WIDE float sum_of(const float* values, std::int64_t count) {
  __m512 sum = _mm512_setzero_ps();
  for (std::int64_t i = 0; i < count; i += kLanes) {
    sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(first_lanes(count - i), values + i));
  }
  return sum_of_lanes(sum);
}

EVERSTEP_WIDE float dot(const float* left, const float* right, std::int64_t count) {
  __m512 sum = _mm512_setzero_ps();
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const __mmask16 present = first_lanes(count - i);
    sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(present, left + i), _mm512_maskz_loadu_ps(present, right + i), sum);
  }
  return sum_of_lanes(sum);
}

EVERSTEP_WIDE void scale_scores(float* scores, std::int64_t count, float scale, const float* mask) {
  if (mask == nullptr) {
    for (std::int64_t i = 0; i < count; ++i) scores[i] *= scale;
  } else {
    for (std::int64_t i = 0; i < count; ++i) scores[i] = scores[i] * scale + mask[i];
  }
}

EVERSTEP_WIDE void to_probabilities(float* scores, std::int64_t count, float log_sum) {
  for (std::int64_t i = 0; i < count; ++i) scores[i] = kernels::probability(scores[i] - log_sum);
}

EVERSTEP_WIDE void to_score_gradients(const float* __restrict probabilities, float* __restrict gradients,
                                      std::int64_t count, float mean, float scale) {
  for (std::int64_t i = 0; i < count; ++i) gradients[i] = probabilities[i] * (gradients[i] - mean) * scale;
}

EVERSTEP_WIDE void multiply_all(float* values, std::int64_t count, float factor) {
  for (std::int64_t i = 0; i < count; ++i) values[i] *= factor;
}

float scale_of(const HeadShape& shape) { return 1.0F / std::sqrt(static_cast<float>(shape.size)); }

Scratch& scratch_for(const HeadShape& shape) {
  thread_local Scratch scratch;
  scratch.make_room(shape.length);
  return scratch;
}

void make_scores(const HeadShape& shape, const HeadInputs& inputs, const Queries& queries, float* scores) {
  const FloatMatrix query = rows_of(inputs.query, inputs.step, queries.first, queries.count, shape.size);
  const FloatMatrix key = rows_of(inputs.key, inputs.step, 0, queries.keys, shape.size);
  wide_product(query, turned(key), {}, scores, queries.keys);
}

}  // namespace

void wide_attention(const HeadShape& shape, const HeadInputs& inputs, const HeadOutput& output) {
  float* const scores = scratch_for(shape).probabilities.data();
  for (std::int64_t first = 0; first < shape.length; first += kQueries) {
    const Queries queries = queries_from(shape, first);
    make_scores(shape, inputs, queries, scores);
    float sums[kQueries];
    for (std::int64_t i = 0; i < queries.count; ++i) {
      float* const row = scores + i * queries.keys;
      const std::int64_t keys = queries.keys_of(i);
      scale_scores(row, keys, scale_of(shape), shape.mask);
      const float largest = largest_of(row, keys);
      to_probabilities(row, keys, largest);
      std::fill(row + keys, row + queries.keys, 0.0F);
      sums[i] = sum_of(row, keys);
      output.log_sums[first + i] = largest + std::log(sums[i]);
    }
    float* const values = output.value + first * output.step;
    wide_product({scores, queries.count, queries.keys, queries.keys, 1},
                 rows_of(inputs.value, inputs.step, 0, queries.keys, shape.size), {}, values, output.step);
    for (std::int64_t i = 0; i < queries.count; ++i) multiply_all(values + i * output.step, shape.size, 1 / sums[i]);
  }
}

// The last queries come first: all keys are among those that they see, so that their share starts the sums.
void wide_attention_backward(const HeadShape& shape, const HeadInputs& inputs, const HeadResults& results,
                             const HeadGradients& gradients) {
  Scratch& scratch = scratch_for(shape);
  float* const probabilities = scratch.probabilities.data();
  float* const score_gradients = scratch.gradients.data();
  const std::int64_t last = (shape.length - 1) / kQueries * kQueries;
  for (std::int64_t first = last; first >= 0; first -= kQueries) {
    const Queries queries = queries_from(shape, first);
    const FloatMatrix query = rows_of(inputs.query, inputs.step, first, queries.count, shape.size);
    const FloatMatrix key = rows_of(inputs.key, inputs.step, 0, queries.keys, shape.size);
    const FloatMatrix value = rows_of(inputs.value, inputs.step, 0, queries.keys, shape.size);
    const FloatMatrix gradient = rows_of(results.gradient, results.step, first, queries.count, shape.size);
    make_scores(shape, inputs, queries, probabilities);
    wide_product(gradient, turned(value), {}, score_gradients, queries.keys);
    for (std::int64_t i = 0; i < queries.count; ++i) {
      float* const row = probabilities + i * queries.keys;
      float* const gradient_row = score_gradients + i * queries.keys;
      const std::int64_t keys = queries.keys_of(i);
      const std::int64_t token = first + i;
      scale_scores(row, keys, scale_of(shape), shape.mask);
      to_probabilities(row, keys, results.log_sums[token]);
      std::fill(row + keys, row + queries.keys, 0.0F);
      const float mean = dot(results.gradient + token * results.step, results.value + token * results.step, shape.size);
      to_score_gradients(row, gradient_row, queries.keys, mean, scale_of(shape));
    }
    const FloatMatrix by_query{probabilities, queries.count, queries.keys, queries.keys, 1};
    const FloatMatrix gradient_by_query{score_gradients, queries.count, queries.keys, queries.keys, 1};
    const auto sum_so_far = [&](float* sums) { return first == last ? Addend{} : Addend{sums, gradients.step}; };
    wide_product(turned(by_query), gradient, sum_so_far(gradients.value), gradients.value, gradients.step);
    wide_product(turned(gradient_by_query), query, sum_so_far(gradients.key), gradients.key, gradients.step);
    wide_product(gradient_by_query, key, {}, gradients.query + first * gradients.step, gradients.step);
  }
}

#else

void wide_attention(const HeadShape&, const HeadInputs&, const HeadOutput&) {
  EVERSTEP_CHECK(false, "this CPU has wide products");
}

void wide_attention_backward(const HeadShape&, const HeadInputs&, const HeadResults&, const HeadGradients&) {
  EVERSTEP_CHECK(false, "this CPU has wide products");
}

#endif

}  // namespace everstep::trainer
