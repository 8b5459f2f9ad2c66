#include "trainer/cuda/launches.h"
#include "trainer/kernels/cross_entropy.h"
#include "trainer/kernels/finite.h"
#include "trainer/kernels/fixed_point.h"
#include "trainer/kernels/gelu.h"
#include "trainer/kernels/grid.h"
#include "trainer/kernels/hash.h"
#include "trainer/kernels/ordered_sum.h"
#include "trainer/kernels/sums.h"

namespace everstep::trainer::cuda {
namespace {

using kernels::blocks_for;
using kernels::kMostBlocks;
using kernels::kThreads;
using kernels::Seat;

__device__ Seat own_seat() {
  return {blockIdx.x, gridDim.x, static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x)};
}

// ---- one element or row after the other ----

template <typename Work>
__global__ void each(Work work, std::int64_t count) {
  kernels::walk(own_seat(), count, work);
}

template <typename Work>
void run_each(const Work& work, std::int64_t count, cudaStream_t stream) {
  if (count == 0) return;
  each<<<blocks_for(count), kThreads, 0, stream>>>(work, count);
}

// All blocks that write a flag write 1.
__device__ void raise(bool wanted, std::uint8_t* flag) {
  const bool any = __syncthreads_or(wanted ? 1 : 0) != 0;
  if (any && threadIdx.x == 0) *flag = 1;
}

template <typename Work>
__global__ void each_with_flag(Work work, std::int64_t count, std::uint8_t* flag) {
  raise(kernels::walk_any(own_seat(), count, work), flag);
}

template <typename Work>
void run_each_with_flag(const Work& work, std::int64_t count, std::uint8_t* flag, cudaStream_t stream) {
  if (count == 0) return;
  each_with_flag<<<blocks_for(count), kThreads, 0, stream>>>(work, count, flag);
}

// A block per row.
__global__ void each_row_with_flag(kernels::AddFixedPointRows add, std::int64_t rows, std::uint8_t* flag) {
  bool any = false;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) any = add(row, threadIdx.x, blockDim.x) || any;
  raise(any, flag);
}

// ---- sums in the order of kernels/ordered_sum.h ----

struct SharedChunk {
  double terms[kernels::kSumChunk];
  double lanes[kernels::kSumLanes];
};

// By a whole block; every thread gets the sum.
template <typename Term>
__device__ double chunk_sum(const Term& term, std::int64_t chunk, std::int64_t count, SharedChunk& shared) {
  const std::int64_t first = chunk * kernels::kSumChunk;
  const std::int64_t end = first + kernels::kSumChunk < count ? first + kernels::kSumChunk : count;
  const kernels::ChunkByBlock sum{shared.terms, shared.lanes};
  __syncthreads();
  sum.gather(term, first, end, static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x));
  __syncthreads();
  sum.add_lanes(end - first, static_cast<int>(threadIdx.x));
  __syncthreads();
  return sum.total();
}

template <typename Term>
__global__ void sum_each_chunk(Term term, std::int64_t count, double* chunks) {
  __shared__ SharedChunk shared;
  for (std::int64_t chunk = blockIdx.x; chunk < kernels::sum_chunks(count); chunk += gridDim.x) {
    const double sum = chunk_sum(term, chunk, count, shared);
    if (threadIdx.x == 0) chunks[chunk] = sum;
  }
}

// By one block: its threads bring the numbers near, and one adds them from left to right.
__global__ void join_chunks(const double* chunks, std::int64_t count, double* sum) {
  __shared__ double near[kernels::kSumChunk];
  double total = 0;
  for (std::int64_t first = 0; first < count; first += kernels::kSumChunk) {
    const std::int64_t size = count - first < kernels::kSumChunk ? count - first : kernels::kSumChunk;
    __syncthreads();
    for (std::int64_t i = threadIdx.x; i < size; i += blockDim.x) near[i] = chunks[first + i];
    __syncthreads();
    if (threadIdx.x == 0) {
      for (std::int64_t i = 0; i < size; ++i) total += near[i];
    }
  }
  if (threadIdx.x == 0) *sum = total;
}

template <typename Sum>
void run_sum_of_squares(double* sum, const Sum* sums, std::int64_t count, double* chunks, cudaStream_t stream) {
  const std::int64_t parts = kernels::sum_chunks(count);
  if (parts > 0) {
    sum_each_chunk<<<blocks_for(parts, 1), kThreads, 0, stream>>>(kernels::SquareOf<Sum>{sums}, count, chunks);
  }
  join_chunks<<<1, kThreads, 0, stream>>>(chunks, parts, sum);
}

// ---- cross entropy ----

// Integers, in whatever order; every thread of the block gets the count.
__device__ std::int64_t count_labels_in_block(const Logits& logits) {
  __shared__ unsigned long long total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  const std::int64_t own = kernels::count_labels(logits.labels, logits.rows, threadIdx.x, blockDim.x);
  atomicAdd(&total, static_cast<unsigned long long>(own));
  __syncthreads();
  return static_cast<std::int64_t>(total);
}

// By one block: there is a number per row only.
__global__ void mean_cross_entropy(kernels::EntropyTerm term, Logits logits, float* loss) {
  __shared__ SharedChunk shared;
  double sum = 0;
  for (std::int64_t chunk = 0; chunk < kernels::sum_chunks(logits.rows); ++chunk) {
    sum += chunk_sum(term, chunk, logits.rows, shared);
  }
  const std::int64_t labelled = count_labels_in_block(logits);
  if (threadIdx.x == 0) *loss = kernels::mean_entropy(sum, labelled);
}

// Every block counts the labels anew, which is less than the rows it then walks.
__global__ void entropy_gradients(kernels::EntropyGradient make, Logits logits, double weight) {
  make.scale = kernels::entropy_scale(weight, count_labels_in_block(logits));
  for (std::int64_t row = blockIdx.x; row < logits.rows; row += gridDim.x) make(row, threadIdx.x, blockDim.x);
}

// ---- hashes ----

__global__ void begin_hash(std::uint64_t* hash, std::int64_t size) { *hash = kernels::hash_of_length(size); }

__global__ void add_hashes_of_chunks(kernels::HashedBytes bytes, std::uint64_t* hash) {
  __shared__ unsigned long long chunk_hash;
  for (std::int64_t chunk = blockIdx.x; chunk < kernels::hash_chunks(bytes.size); chunk += gridDim.x) {
    __syncthreads();
    if (threadIdx.x == 0) chunk_hash = 0;
    __syncthreads();
    atomicAdd(&chunk_hash, static_cast<unsigned long long>(bytes.chunk_part(chunk, threadIdx.x, blockDim.x)));
    __syncthreads();
    if (threadIdx.x == 0) {
      atomicAdd(reinterpret_cast<unsigned long long*>(hash),
                static_cast<unsigned long long>(kernels::chunk_share(chunk_hash, chunk)));
    }
  }
}

template <typename Sum, typename Weight>
void run_trial(const kernels::AdamWConstants& constants, const AdamWTrialState<Sum, Weight>& s, cudaStream_t stream) {
  run_each(kernels::AdamWTrial<Sum, Weight>{constants, s.master, s.first, s.second, s.sums, s.weights}, s.count,
           stream);
}

}  // namespace

void add_sums(float* sums, const float* addends, std::int64_t count, cudaStream_t stream) {
  run_each(kernels::AddSums<float>{sums, addends}, count, stream);
}

void add_sums(std::uint64_t* sums, const std::uint64_t* addends, std::int64_t count, cudaStream_t stream) {
  run_each(kernels::AddSums<std::uint64_t>{sums, addends}, count, stream);
}

void add_fixed_point(std::int64_t* sums, const float* values, std::int64_t count, float limit, std::uint8_t* overflow,
                     cudaStream_t stream) {
  const kernels::AddFixedPoint add{sums, values, kernels::magnitude_bits(limit)};
  run_each_with_flag(add, count, overflow, stream);
}

void add_fixed_point_rows(const FixedPointRows& rows, std::uint8_t* overflow, cudaStream_t stream) {
  if (rows.count == 0) return;
  const kernels::AddFixedPointRows add{rows.sums, rows.index, rows.rows, rows.limits, rows.width};
  each_row_with_flag<<<blocks_for(rows.count, 1), kThreads, 0, stream>>>(add, rows.count, overflow);
}

void adamw(const kernels::AdamWConstants& constants, const AdamWState<float>& state, cudaStream_t stream) {
  run_each(kernels::AdamW<float>{constants, state.master, state.first, state.second, state.sums}, state.count, stream);
}

void adamw(const kernels::AdamWConstants& constants, const AdamWState<std::int64_t>& state, cudaStream_t stream) {
  run_each(kernels::AdamW<std::int64_t>{constants, state.master, state.first, state.second, state.sums}, state.count,
           stream);
}

void adamw_trial(const kernels::AdamWConstants& constants, const AdamWTrialState<float, float>& state,
                 cudaStream_t stream) {
  run_trial(constants, state, stream);
}

void adamw_trial(const kernels::AdamWConstants& constants, const AdamWTrialState<float, kernels::Bf16>& state,
                 cudaStream_t stream) {
  run_trial(constants, state, stream);
}

void adamw_trial(const kernels::AdamWConstants& constants, const AdamWTrialState<std::int64_t, float>& state,
                 cudaStream_t stream) {
  run_trial(constants, state, stream);
}

void adamw_trial(const kernels::AdamWConstants& constants, const AdamWTrialState<std::int64_t, kernels::Bf16>& state,
                 cudaStream_t stream) {
  run_trial(constants, state, stream);
}

void round_to_bf16(std::uint16_t* weights, const float* master, std::int64_t count, cudaStream_t stream) {
  run_each(kernels::RoundToBf16{master, weights}, count, stream);
}

void sum_of_squares(double* sum, const float* sums, std::int64_t count, double* chunks, cudaStream_t stream) {
  run_sum_of_squares(sum, sums, count, chunks, stream);
}

void sum_of_squares(double* sum, const std::int64_t* sums, std::int64_t count, double* chunks, cudaStream_t stream) {
  run_sum_of_squares(sum, sums, count, chunks, stream);
}

void note_not_finite(std::uint8_t* flag, const std::uint32_t* numbers, std::int64_t count, cudaStream_t stream) {
  run_each_with_flag(kernels::IsNotFinite<std::uint32_t>{numbers}, count, flag, stream);
}

void note_not_finite(std::uint8_t* flag, const std::uint16_t* numbers, std::int64_t count, cudaStream_t stream) {
  run_each_with_flag(kernels::IsNotFinite<std::uint16_t>{numbers}, count, flag, stream);
}

void hash(std::uint64_t* hash, const std::uint8_t* bytes, std::int64_t size, cudaStream_t stream) {
  begin_hash<<<1, 1, 0, stream>>>(hash, size);
  if (size == 0) return;
  add_hashes_of_chunks<<<blocks_for(kernels::hash_chunks(size), 1), kThreads, 0, stream>>>({bytes, size}, hash);
}

void swap(std::uint8_t* left, std::uint8_t* right, std::int64_t size, cudaStream_t stream) {
  const std::uintptr_t places = reinterpret_cast<std::uintptr_t>(left) | reinterpret_cast<std::uintptr_t>(right);
  if (places % sizeof(std::uint64_t) != 0) {
    run_each(kernels::Swap<std::uint8_t>{left, right}, size, stream);
    return;
  }
  const std::int64_t words = size / 8;
  run_each(
      kernels::Swap<std::uint64_t>{reinterpret_cast<std::uint64_t*>(left), reinterpret_cast<std::uint64_t*>(right)},
      words, stream);
  run_each(kernels::Swap<std::uint8_t>{left + words * 8, right + words * 8}, size - words * 8, stream);
}

void gelu(float* value, const float* input, std::int64_t count, cudaStream_t stream) {
  run_each(kernels::Gelu<float>{input, value}, count, stream);
}

void gelu(kernels::Bf16* value, const kernels::Bf16* input, std::int64_t count, cudaStream_t stream) {
  run_each(kernels::Gelu<kernels::Bf16>{input, value}, count, stream);
}

void gelu_backward(const GeluTensors<float>& t, cudaStream_t stream) {
  run_each(kernels::GeluBackward<float>{t.input, t.output_gradient, t.value, t.input_gradient}, t.count, stream);
}

void gelu_backward(const GeluTensors<kernels::Bf16>& t, cudaStream_t stream) {
  run_each(kernels::GeluBackward<kernels::Bf16>{t.input, t.output_gradient, t.value, t.input_gradient}, t.count,
           stream);
}

void dropout(const kernels::Dropout<float>& dropout, cudaStream_t stream) {
  run_each(dropout, dropout.calls(), stream);
}

void dropout(const kernels::Dropout<kernels::Bf16>& dropout, cudaStream_t stream) {
  run_each(dropout, dropout.calls(), stream);
}

void cross_entropy(float* loss, const float* log_probabilities, const Logits& logits, cudaStream_t stream) {
  const kernels::EntropyTerm term{log_probabilities, logits.labels, logits.classes};
  mean_cross_entropy<<<1, kThreads, 0, stream>>>(term, logits, loss);
}

void cross_entropy_backward(float* gradient, const float* log_probabilities, const Logits& logits, double weight,
                            cudaStream_t stream) {
  if (logits.rows == 0) return;
  const kernels::EntropyGradient make{log_probabilities, logits.labels, gradient, logits.classes, 0.0F};
  entropy_gradients<<<blocks_for(logits.rows, 1), kThreads, 0, stream>>>(make, logits, weight);
}

}  // namespace everstep::trainer::cuda
