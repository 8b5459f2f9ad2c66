#include "trainer/torch/cpu_ops.h"

#include <array>
#include <span>

#include "trainer/kernels/clones.h"
#include "trainer/kernels/cross_entropy.h"
#include "trainer/kernels/ordered_sum.h"
#include "trainer/model/data_source.h"
#include "trainer/update/fixed_point.h"
#include "trainer/update/loops.h"

namespace everstep::trainer::cpu {
namespace {

static_assert(kernels::kNoLabel == kIgnoredLabel);

// The elements of a tensor whose type LibTorch calls otherwise, but whose bits are those of T.
template <typename T>
std::span<T> mutable_elements(const Tensor& tensor) {
  return {static_cast<T*>(tensor.mutable_data_ptr()), tensor.nbytes() / sizeof(T)};
}

template <typename T>
std::span<const T> elements(const Tensor& tensor) {
  return {static_cast<const T*>(tensor.const_data_ptr()), tensor.nbytes() / sizeof(T)};
}

bool is_fixed_point(const Tensor& sums) { return sums.scalar_type() == at::kLong; }

template <typename Sum>
void step(const Tensor& master, const Tensor& first, const Tensor& second, const Tensor& gradient,
          const kernels::AdamWConstants& constants) {
  const auto data = [](const Tensor& tensor) { return tensor.mutable_data_ptr<float>(); };
  adamw(constants,
        AdamWState<Sum>{data(master), data(first), data(second), gradient.mutable_data_ptr<Sum>(), gradient.numel()});
}

template <typename Sum, typename Weight>
void try_step(const Tensor& weights, const std::array<Tensor, 3>& state, const Tensor& gradient,
              const kernels::AdamWConstants& constants) {
  const auto data = [&](std::size_t i) { return state[i].const_data_ptr<float>(); };
  adamw_trial(constants,
              AdamWTrialState<Sum, Weight>{data(0), data(1), data(2), gradient.const_data_ptr<Sum>(),
                                           static_cast<Weight*>(weights.mutable_data_ptr()), gradient.numel()});
}

template <typename Sum>
void try_step_of(const Tensor& weights, const std::array<Tensor, 3>& state, const Tensor& gradient,
                 const kernels::AdamWConstants& constants) {
  if (weights.scalar_type() == at::kFloat) return try_step<Sum, float>(weights, state, gradient, constants);
  try_step<Sum, kernels::Bf16>(weights, state, gradient, constants);
}

EVERSTEP_CLONES void make_entropy_gradients(const kernels::EntropyGradient& make, std::int64_t rows) {
  for (std::int64_t row = 0; row < rows; ++row) make(row, 0, 1);
}

}  // namespace

void add_sums(const Tensor& sums, const Tensor& addend) {
  if (is_fixed_point(sums)) {
    add_all(mutable_elements<std::uint64_t>(sums), elements<std::uint64_t>(addend));
  } else {
    add_all(mutable_elements<float>(sums), elements<float>(addend));
  }
}

void add_fixed_point(const Tensor& sums, const Tensor& values, double limit, const Tensor& overflow) {
  const bool fits = trainer::add_fixed_point(mutable_elements<std::int64_t>(sums), elements<float>(values),
                                             static_cast<float>(limit));
  if (!fits) *overflow.mutable_data_ptr<std::uint8_t>() = 1;
}

void add_fixed_point_rows(const Tensor& sums, const Tensor& index, const Tensor& rows, const Tensor& limits,
                          const Tensor& overflow) {
  const auto width = static_cast<std::size_t>(rows.size(1));
  const std::span<std::int64_t> all = mutable_elements<std::int64_t>(sums);
  const std::span<const float> values = elements<float>(rows);
  for (std::size_t i = 0; i < static_cast<std::size_t>(index.numel()); ++i) {
    const auto row = static_cast<std::size_t>(elements<std::int64_t>(index)[i]);
    const float limit = elements<float>(limits)[i];
    const bool fits =
        trainer::add_fixed_point(all.subspan(row * width, width), values.subspan(i * width, width), limit);
    if (!fits) *overflow.mutable_data_ptr<std::uint8_t>() = 1;
  }
}

void adamw(const Tensor& master, const Tensor& first, const Tensor& second, const Tensor& gradient,
           at::ArrayRef<double> constants) {
  const kernels::AdamWConstants narrow = kernels::adamw_constants(constants.data());
  if (is_fixed_point(gradient)) {
    step<std::int64_t>(master, first, second, gradient, narrow);
  } else {
    step<float>(master, first, second, gradient, narrow);
  }
}

void adamw_trial(const Tensor& weights, const Tensor& master, const Tensor& first, const Tensor& second,
                 const Tensor& gradient, at::ArrayRef<double> constants) {
  const kernels::AdamWConstants narrow = kernels::adamw_constants(constants.data());
  const std::array<Tensor, 3> state{master, first, second};
  if (is_fixed_point(gradient)) return try_step_of<std::int64_t>(weights, state, gradient, narrow);
  try_step_of<float>(weights, state, gradient, narrow);
}

void round_to_bf16(const Tensor& weights, const Tensor& master) {
  trainer::round_to_bf16(elements<float>(master), mutable_elements<std::uint16_t>(weights));
}

void sum_of_squares(const Tensor& sum, const Tensor& gradient) {
  *sum.mutable_data_ptr<double>() = is_fixed_point(gradient) ? trainer::sum_of_squares(elements<std::int64_t>(gradient))
                                                             : trainer::sum_of_squares(elements<float>(gradient));
}

void note_not_finite(const Tensor& flag, const Tensor& values) {
  const bool half = values.scalar_type() == at::kBFloat16;
  const bool finite = half ? all_finite(elements<std::uint16_t>(values)) : all_finite(elements<std::uint32_t>(values));
  if (!finite) *flag.mutable_data_ptr<std::uint8_t>() = 1;
}

void hash(const Tensor& hash, const Tensor& bytes) {
  *hash.mutable_data_ptr<std::int64_t>() = static_cast<std::int64_t>(tree_hash(elements<std::byte>(bytes)));
}

void swap(const Tensor& left, const Tensor& right) {
  swap_bytes(mutable_elements<std::byte>(left), mutable_elements<std::byte>(right));
}

void cross_entropy(const Tensor& loss, const Tensor& log_probabilities, const Tensor& labels) {
  const std::int64_t rows = labels.numel();
  const std::int64_t* const label_of = labels.const_data_ptr<std::int64_t>();
  const kernels::EntropyTerm term{log_probabilities.const_data_ptr<float>(), label_of, log_probabilities.size(1)};
  *loss.mutable_data_ptr<float>() =
      kernels::mean_entropy(kernels::ordered_sum(term, rows), kernels::count_labels(label_of, rows, 0, 1));
}

void cross_entropy_backward(const Tensor& gradient, const Tensor& log_probabilities, const Tensor& labels,
                            double weight) {
  const std::int64_t rows = labels.numel();
  const std::int64_t* const label_of = labels.const_data_ptr<std::int64_t>();
  const float scale = kernels::entropy_scale(weight, kernels::count_labels(label_of, rows, 0, 1));
  make_entropy_gradients({log_probabilities.const_data_ptr<float>(), label_of, gradient.mutable_data_ptr<float>(),
                          log_probabilities.size(1), scale},
                         rows);
}

}  // namespace everstep::trainer::cpu
