#pragma once

#include <cstdint>

namespace everstep::trainer {

// A matrix of floats somewhere in memory: element (r, c) is data[r · row_step + c · column_step]. One of the steps
// is 1.
struct FloatMatrix {
  const float* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_step = 0;
  std::int64_t column_step = 0;
};

// What a product is added to, row by row of the result: nothing, a bias (row_step 0) or the result itself.
struct Addend {
  const float* data = nullptr;
  std::int64_t row_step = 0;
};

// Whether wide_product() is to be used on this CPU: one that has vectors of 512 bits, and is not Intel's. Only on
// Intel's does MKL, which LibTorch multiplies fp32 with, use more than 256.
bool has_wide_product();

// result [left.rows, right.columns], its rows `row_step` apart = addend + left · right. On one thread; nothing may be
// empty.
//
// An element is the addend plus one sum for every 256 terms in turn; such a sum is a chain of fused multiply-adds. So
// its bits depend on its row, its column and its addend alone: on no size, address or place in the matrix.
void wide_product(const FloatMatrix& left, const FloatMatrix& right, const Addend& addend, float* result,
                  std::int64_t row_step);

}  // namespace everstep::trainer
