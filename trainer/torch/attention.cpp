// The CPU's kernels of the operators attend and attend_backward.
#include "trainer/torch/cpu_ops.h"
#include "trainer/torch/wide_attention.h"

namespace everstep::trainer::cpu {
namespace {

// Calls for each head of each sequence with its number, its shape, and where its numbers begin in a tensor whose tokens
// are so far apart.
template <typename Function>
void for_each_head(const Tensor& query, std::int64_t length, std::int64_t heads, bool causal,
                   const std::optional<Tensor>& mask, const Function& function) {
  const std::int64_t size = query.size(1) / heads;
  for (std::int64_t sequence = 0; sequence < query.size(0) / length; ++sequence) {
    const float* const masked = mask ? mask->const_data_ptr<float>() + sequence * length : nullptr;
    for (std::int64_t head = 0; head < heads; ++head) {
      const auto begin = [&](std::int64_t step) { return sequence * length * step + head * size; };
      function(sequence * heads + head, HeadShape{length, size, causal, masked}, begin);
    }
  }
}

struct HeadsOf {
  const Tensor& query;
  const Tensor& key;
  const Tensor& value;

  template <typename Begin>
  HeadInputs at(const Begin& begin) const {
    const std::int64_t step = query.stride(0);
    const auto first = [&](const Tensor& tensor) { return tensor.const_data_ptr<float>() + begin(step); };
    return {first(query), first(key), first(value), step};
  }
};

float* mutable_at(const Tensor& tensor, std::int64_t begin) { return tensor.mutable_data_ptr<float>() + begin; }

}  // namespace

void attend(const Tensor& output, const Tensor& log_sums, const Tensor& query, const Tensor& key, const Tensor& value,
            std::int64_t length, std::int64_t heads, bool causal, const std::optional<Tensor>& mask) {
  for_each_head(query, length, heads, causal, mask,
                [&](std::int64_t number, const HeadShape& shape, const auto& begin) {
                  const std::int64_t step = output.stride(0);
                  wide_attention(shape, HeadsOf{query, key, value}.at(begin),
                                 {mutable_at(output, begin(step)), step, mutable_at(log_sums, number * length)});
                });
}

void attend_backward(const Tensor& query_gradient, const Tensor& key_gradient, const Tensor& value_gradient,
                     const Tensor& output_gradient, const Tensor& query, const Tensor& key, const Tensor& value,
                     const Tensor& output, const Tensor& log_sums, std::int64_t length, std::int64_t heads, bool causal,
                     const std::optional<Tensor>& mask) {
  for_each_head(
      query, length, heads, causal, mask, [&](std::int64_t number, const HeadShape& shape, const auto& begin) {
        const std::int64_t step = output.stride(0);
        const std::int64_t apart = query_gradient.stride(0);
        wide_attention_backward(
            shape, HeadsOf{query, key, value}.at(begin),
            {output.const_data_ptr<float>() + begin(step), output_gradient.const_data_ptr<float>() + begin(step), step,
             log_sums.const_data_ptr<float>() + number * length},
            {mutable_at(query_gradient, begin(apart)), mutable_at(key_gradient, begin(apart)),
             mutable_at(value_gradient, begin(apart)), apart});
      });
}

}  // namespace everstep::trainer::cpu
