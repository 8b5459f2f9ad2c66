#include "trainer/torch/operator_probe.h"

#include <array>
#include <bit>
#include <limits>
#include <span>

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include "base/random.h"
#include "trainer/kernels/adamw.h"
#include "trainer/model/data_source.h"
#include "trainer/torch/ops.h"
#include "trainer/torch/torch_device.h"
#include "trainer/update/loops.h"

namespace everstep::trainer {
namespace {

using Written = std::vector<at::Tensor>;

constexpr std::int64_t kNumbers = 100'003;  // more than any block of threads, and a multiple of no vector
constexpr std::int64_t kRows = 301;
constexpr std::int64_t kWidth = 97;
constexpr double kLimit = 1000;
constexpr kernels::AdamWConstants kStep{0.5F, 0.9F, 0.1F, 0.95F, 0.05F, 0.9999F, 0.003F, 0.3F, 1e-8F};

// Numbers drawn on the host, where the operator runs. Every call draws others.
class Numbers {
 public:
  explicit Numbers(c10::Device device) : device_(device) {}

  at::Tensor floats(at::IntArrayRef shape, double largest) {
    return draw(shape, at::kFloat, [&](double uniform) { return static_cast<float>((2 * uniform - 1) * largest); });
  }
  at::Tensor bf16(at::IntArrayRef shape, double largest) { return floats(shape, largest).to(at::kBFloat16); }
  at::Tensor of(at::ScalarType type, at::IntArrayRef shape, double largest) {
    return type == at::kFloat ? floats(shape, largest) : bf16(shape, largest);
  }
  at::Tensor logarithms(at::IntArrayRef shape) {
    return draw(shape, at::kFloat, [](double uniform) { return static_cast<float>(-100 * uniform); });
  }
  at::Tensor integers(at::IntArrayRef shape, std::int64_t bound) {
    return draw(shape, at::kLong,
                [&](double uniform) { return static_cast<std::int64_t>(uniform * static_cast<double>(bound)); });
  }
  at::Tensor squares(at::IntArrayRef shape) {
    return draw(shape, at::kFloat, [](double uniform) { return static_cast<float>(uniform * uniform); });
  }
  at::Tensor zeros(at::IntArrayRef shape, at::ScalarType type) const {
    return at::zeros(shape, at::TensorOptions(type).device(device_));
  }
  at::Tensor here(const at::Tensor& on_host) const { return on_host.to(device_); }

 private:
  template <typename Make>
  at::Tensor draw(at::IntArrayRef shape, at::ScalarType type, const Make& make) {
    using Number = decltype(make(0.0));
    const RandomStream stream{2026, stream_++};
    const at::Tensor drawn = at::empty(shape, type);
    auto* const numbers = drawn.mutable_data_ptr<Number>();
    for (std::int64_t i = 0; i < drawn.numel(); ++i) numbers[i] = make(stream.uniform(static_cast<std::uint64_t>(i)));
    return drawn.to(device_);
  }

  c10::Device device_;
  std::uint64_t stream_ = 0;
};

Written add_sums(Numbers& numbers) {
  const at::Tensor floats = numbers.floats({kNumbers}, 3);
  ops::add_sums(floats, numbers.floats({kNumbers}, 2));
  const at::Tensor fixed = numbers.integers({kNumbers}, std::int64_t{1} << 52);
  ops::add_sums(fixed, numbers.integers({kNumbers}, std::int64_t{1} << 52));
  return {floats, fixed};
}

// Some of the values are too large.
Written add_fixed_point(Numbers& numbers) {
  const at::Tensor sums = numbers.integers({kNumbers}, std::int64_t{1} << 52);
  const at::Tensor overflow = numbers.zeros({1}, at::kByte);
  ops::add_fixed_point(sums, numbers.floats({kNumbers}, 0.9 * kLimit), kLimit, overflow);
  const at::Tensor none = overflow.clone();
  ops::add_fixed_point(sums, numbers.floats({kNumbers}, 1.1 * kLimit), kLimit, overflow);
  return {sums, none, overflow};
}

Written add_fixed_point_rows(Numbers& numbers) {
  const at::Tensor sums = numbers.integers({2 * kRows, kWidth}, std::int64_t{1} << 52);
  const at::Tensor overflow = numbers.zeros({1}, at::kByte);
  const at::Tensor index = numbers.here(at::arange(kRows, at::kLong).mul(2).add(1).flip(0));
  const at::Tensor limits = numbers.here(at::full({kRows}, kLimit, at::kFloat));
  ops::add_fixed_point_rows(sums, index, numbers.floats({kRows, kWidth}, 1.1 * kLimit), limits, overflow);
  return {sums, overflow};
}

Written adamw(Numbers& numbers) {
  Written written;
  for (const bool fixed : {false, true}) {
    const at::Tensor master = numbers.floats({kNumbers}, 1);
    const at::Tensor first = numbers.floats({kNumbers}, 0.1);
    const at::Tensor second = numbers.squares({kNumbers});
    const at::Tensor gradient =
        fixed ? numbers.integers({kNumbers}, std::int64_t{1} << 47) : numbers.floats({kNumbers}, 1);
    ops::adamw(master, first, second, gradient, kStep);
    written.insert(written.end(), {master, first, second, gradient});
  }
  return written;
}

Written adamw_trial(Numbers& numbers) {
  Written written;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const bool fixed : {false, true}) {
      const at::Tensor weights = numbers.zeros({kNumbers}, type);
      const at::Tensor master = numbers.floats({kNumbers}, 1);
      const at::Tensor first = numbers.floats({kNumbers}, 0.1);
      const at::Tensor gradient =
          fixed ? numbers.integers({kNumbers}, std::int64_t{1} << 47) : numbers.floats({kNumbers}, 1);
      ops::adamw_trial(weights, master, first, numbers.squares({kNumbers}), gradient, kStep);
      written.insert(written.end(), {weights, master, gradient});
    }
  }
  return written;
}

Written round_to_bf16(Numbers& numbers) {
  const at::Tensor weights = numbers.zeros({kNumbers}, at::kBFloat16);
  ops::round_to_bf16(weights, numbers.floats({kNumbers}, 7));
  return {weights};
}

Written sum_of_squares(Numbers& numbers) {
  const at::Tensor of_floats = numbers.zeros({1}, at::kDouble);
  const at::Tensor of_fixed = numbers.zeros({1}, at::kDouble);
  ops::sum_of_squares(of_floats, numbers.floats({kNumbers}, 3));
  ops::sum_of_squares(of_fixed, numbers.integers({kNumbers}, std::int64_t{1} << 52));
  return {of_floats, of_fixed};
}

Written note_not_finite(Numbers& numbers) {
  Written written;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor values = numbers.of(type, {kNumbers}, 3);
    for (const double wrong : {1.0, std::numeric_limits<double>::infinity()}) {
      values.select(0, kNumbers - 2).fill_(wrong);
      written.push_back(numbers.zeros({1}, at::kByte));
      ops::note_not_finite(written.back(), values);
    }
  }
  return written;
}

Written hash(Numbers& numbers) {
  const at::Tensor result = numbers.zeros({1}, at::kLong);
  ops::hash(result, numbers.floats({kNumbers}, 3));
  return {result};
}

Written swap(Numbers& numbers) {
  const at::Tensor left = numbers.floats({kNumbers}, 3);
  const at::Tensor right = numbers.floats({kNumbers}, 5);
  ops::swap(left, right);
  return {left, right};
}

Written gelu(Numbers& numbers) {
  Written written;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    written.push_back(numbers.zeros({kNumbers}, type));
    ops::gelu(written.back(), numbers.of(type, {kNumbers}, 12));
  }
  return written;
}

Written gelu_backward(Numbers& numbers) {
  Written written;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor value = numbers.zeros({kNumbers}, type);
    const at::Tensor gradient = numbers.zeros({kNumbers}, type);
    const at::Tensor input = numbers.of(type, {kNumbers}, 12);
    ops::gelu_backward(value, gradient, input, numbers.of(type, {kNumbers}, 2));
    written.insert(written.end(), {value, gradient});
  }
  return written;
}

Written dropout(Numbers& numbers) {
  Written written;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    written.push_back(numbers.zeros({kNumbers}, type));
    ops::dropout(written.back(), numbers.of(type, {kNumbers}, 3), 17, 4, 6554);
  }
  return written;
}

// Every row has a label but each seventh.
at::Tensor labels(Numbers& numbers) {
  const at::Tensor drawn = numbers.integers({kRows}, kWidth).to(at::kCPU);
  auto* const label = drawn.mutable_data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < kRows; row += 7) label[row] = kIgnoredLabel;
  return numbers.here(drawn);
}

Written cross_entropy(Numbers& numbers) {
  const at::Tensor loss = numbers.zeros({}, at::kFloat);
  const at::Tensor logarithms = numbers.logarithms({kRows, kWidth});
  ops::cross_entropy(loss, logarithms, labels(numbers));
  return {loss};
}

Written cross_entropy_backward(Numbers& numbers) {
  const at::Tensor gradient = numbers.zeros({kRows, kWidth}, at::kFloat);
  const at::Tensor logarithms = numbers.logarithms({kRows, kWidth});
  ops::cross_entropy_backward(gradient, logarithms, labels(numbers), 0.25);
  return {gradient};
}

struct Probe {
  const char* name;
  std::uint64_t known;
  Written (*run)(Numbers& numbers);
};

// Who changes what an operator computes finds its new number in what the test of this file prints.
constexpr std::array kProbes{
    Probe{"add_sums_", 0xb326ff7f349b2050, add_sums},
    Probe{"add_fixed_point_", 0x845e5228339704ee, add_fixed_point},
    Probe{"add_fixed_point_rows_", 0xf6d6395591541b23, add_fixed_point_rows},
    Probe{"adamw_", 0x6371350bb2737f6c, adamw},
    Probe{"adamw_trial_", 0x33e418e10bd4b892, adamw_trial},
    Probe{"round_to_bf16_", 0x4abb5cff7dc50550, round_to_bf16},
    Probe{"sum_of_squares_", 0x8f67d7c66d6d51fc, sum_of_squares},
    Probe{"note_not_finite_", 0x4d3929a2a817c2b4, note_not_finite},
    Probe{"hash_", 0x2aabf5a9840afe7d, hash},
    Probe{"swap_", 0x8a7c761ef83771fc, swap},
    Probe{"gelu_", 0xefcc5c9645f03586, gelu},
    Probe{"gelu_backward_", 0x0d457c789677f791, gelu_backward},
    Probe{"dropout_", 0x4a23f0fcb6dc3c5c, dropout},
    Probe{"cross_entropy_", 0xd3e6c92489938af5, cross_entropy},
    Probe{"cross_entropy_backward_", 0x019772ed9c8c665e, cross_entropy_backward},
};

std::uint64_t bits_of(const Written& written) {
  std::uint64_t all = 0;
  for (const at::Tensor& tensor : written) {
    const at::Tensor here = tensor.to(at::kCPU).contiguous();
    const std::span bytes(static_cast<const std::byte*>(here.const_data_ptr()), here.nbytes());
    all = std::rotl(all, 1) ^ tree_hash(bytes);
  }
  return all;
}

}  // namespace

Result<std::vector<OperatorBits>> probe_operators(const std::string& kind, int number) {
  std::vector<OperatorBits> all;
  for (const Probe& probe : kProbes) {
    try {
      const at::AutoDispatchBelowADInplaceOrView no_autograd;
      Numbers numbers(torch_device(kind, number));
      all.push_back({probe.name, bits_of(probe.run(numbers)), probe.known});
    } catch (const c10::Error& error) {
      return Error{ErrorCode::kInternal, std::string(probe.name) + ": " + error.what_without_backtrace(), ""};
    }
  }
  return all;
}

}  // namespace everstep::trainer
