#include "trainer/torch/wide_product.h"

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "trainer/torch/wide_vector.h"

namespace everstep::trainer {

#ifdef __x86_64__
namespace {

constexpr std::int64_t kLanes = kWideLanes;
constexpr std::int64_t kTileRows = 8;
constexpr std::int64_t kTileColumns = 2 * kLanes;
constexpr std::int64_t kDepth = 256;   // of the right matrix, kTileColumns wide: fits into the first cache
constexpr std::int64_t kHeight = 512;  // of the left one, kDepth wide: fits into the second

// Parts of both matrices, in the order in which tiles read them.
struct alignas(64) Packed {
  float right[kDepth * kTileColumns];
  float left[kHeight * kDepth];
};

// Two rows' numbers in turn, by ones and by twos, within each quarter of a row: its first or its second half. And two
// rows' even and odd quarters. Not by intrinsics: g++ 12 takes those of shuffles for reads of what nobody set.
#define EVERSTEP_FIRST_ONES 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29
#define EVERSTEP_SECOND_ONES 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31
#define EVERSTEP_FIRST_TWOS 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define EVERSTEP_SECOND_TWOS 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define EVERSTEP_EVEN_QUARTERS 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27
#define EVERSTEP_ODD_QUARTERS 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31

// Rows become columns: row[i] lane j is what row[j] lane i was.
EVERSTEP_WIDE void transpose(__m512 (&row)[kLanes]) {
  __m512 pairs[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = __builtin_shufflevector(row[i], row[i + 1], EVERSTEP_FIRST_ONES);
    pairs[i + 1] = __builtin_shufflevector(row[i], row[i + 1], EVERSTEP_SECOND_ONES);
  }
  __m512 fours[kLanes];  // of rows i … i + 3: fours[i + c] has their columns c, 4 + c, 8 + c and 12 + c
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 4) {
    fours[i] = __builtin_shufflevector(pairs[i], pairs[i + 2], EVERSTEP_FIRST_TWOS);
    fours[i + 1] = __builtin_shufflevector(pairs[i], pairs[i + 2], EVERSTEP_SECOND_TWOS);
    fours[i + 2] = __builtin_shufflevector(pairs[i + 1], pairs[i + 3], EVERSTEP_FIRST_TWOS);
    fours[i + 3] = __builtin_shufflevector(pairs[i + 1], pairs[i + 3], EVERSTEP_SECOND_TWOS);
  }
#pragma GCC unroll 16
  for (int c = 0; c < 4; ++c) {
    const __m512 upper_even = __builtin_shufflevector(fours[c], fours[4 + c], EVERSTEP_EVEN_QUARTERS);
    const __m512 lower_even = __builtin_shufflevector(fours[8 + c], fours[12 + c], EVERSTEP_EVEN_QUARTERS);
    const __m512 upper_odd = __builtin_shufflevector(fours[c], fours[4 + c], EVERSTEP_ODD_QUARTERS);
    const __m512 lower_odd = __builtin_shufflevector(fours[8 + c], fours[12 + c], EVERSTEP_ODD_QUARTERS);
    row[c] = __builtin_shufflevector(upper_even, lower_even, EVERSTEP_EVEN_QUARTERS);
    row[4 + c] = __builtin_shufflevector(upper_odd, lower_odd, EVERSTEP_EVEN_QUARTERS);
    row[8 + c] = __builtin_shufflevector(upper_even, lower_even, EVERSTEP_ODD_QUARTERS);
    row[12 + c] = __builtin_shufflevector(upper_odd, lower_odd, EVERSTEP_ODD_QUARTERS);
  }
}

// `right` has at most kDepth rows and kTileColumns columns here and in the next two; missing columns become zero.
EVERSTEP_WIDE void pack_rows(const FloatMatrix& right, float* packed) {
  const __mmask16 low = first_lanes(right.columns);
  const __mmask16 high = first_lanes(right.columns - kLanes);
  for (std::int64_t k = 0; k < right.rows; ++k) {
    const float* const row = right.data + k * right.row_step;
    _mm512_store_ps(packed + k * kTileColumns, _mm512_maskz_loadu_ps(low, row));
    _mm512_store_ps(packed + k * kTileColumns + kLanes, _mm512_maskz_loadu_ps(high, row + kLanes));
  }
}

EVERSTEP_WIDE void pack_columns(const FloatMatrix& right, float* packed) {
  for (std::int64_t first = 0; first < kTileColumns; first += kLanes) {
    for (std::int64_t k = 0; k < right.rows; k += kLanes) {
      const __mmask16 present = first_lanes(right.rows - k);
      __m512 square[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        const bool is_there = first + i < right.columns;
        square[i] = _mm512_maskz_loadu_ps(is_there ? present : 0, right.data + (first + i) * right.column_step + k);
      }
      transpose(square);
      float* const to = packed + k * kTileColumns + first;
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        if (k + i < right.rows) _mm512_store_ps(to + i * kTileColumns, square[i]);
      }
    }
  }
}

void pack_right(const FloatMatrix& right, float* packed) {
  if (right.column_step == 1) {
    pack_rows(right, packed);
  } else {
    pack_columns(right, packed);
  }
}

// A left matrix whose columns are dense, kTileRows rows of all columns after the other; missing rows are left out.
EVERSTEP_WIDE void pack_left(const FloatMatrix& left, float* packed) {
  for (std::int64_t row = 0; row < left.rows; row += kTileRows) {
    const float* const from = left.data + row;
    float* const to = packed + row * left.columns;
    const std::int64_t rows = std::min(kTileRows, left.rows - row);
    for (std::int64_t k = 0; k < left.columns; ++k) {
      if (rows == kTileRows) {
        _mm256_store_ps(to + k * kTileRows, _mm256_loadu_ps(from + k * left.column_step));
      } else {
        std::copy_n(from + k * left.column_step, rows, to + k * kTileRows);
      }
    }
  }
}

struct Target {
  float* data;
  std::int64_t row_step;
  Addend addend;  // of the tile's first element
  std::int64_t columns;
};

EVERSTEP_WIDE inline void store_whole_row(const Target& target, std::int64_t row, __m512 low, __m512 high) {
  if (target.addend.data != nullptr) {
    const float* const addend = target.addend.data + row * target.addend.row_step;
    low = _mm512_add_ps(_mm512_loadu_ps(addend), low);
    high = _mm512_add_ps(_mm512_loadu_ps(addend + kLanes), high);
  }
  float* const to = target.data + row * target.row_step;
  _mm512_storeu_ps(to, low);
  _mm512_storeu_ps(to + kLanes, high);
}

EVERSTEP_WIDE void store_part_of_row(const Target& target, std::int64_t row, __m512 low, __m512 high) {
  const __mmask16 low_lanes = first_lanes(target.columns);
  const __mmask16 high_lanes = first_lanes(target.columns - kLanes);
  if (target.addend.data != nullptr) {
    const float* const addend = target.addend.data + row * target.addend.row_step;
    low = _mm512_add_ps(_mm512_maskz_loadu_ps(low_lanes, addend), low);
    high = _mm512_add_ps(_mm512_maskz_loadu_ps(high_lanes, addend + kLanes), high);
  }
  float* const to = target.data + row * target.row_step;
  _mm512_mask_storeu_ps(to, low_lanes, low);
  _mm512_mask_storeu_ps(to + kLanes, high_lanes, high);
}

// At most kTileRows rows of the left matrix times packed columns of the right one. Rows that are missing are computed
// as the last one, and not stored.
template <std::int64_t ColumnStep>
EVERSTEP_WIDE void multiply_tile(const FloatMatrix& left, const float* right, const Target& target) {
  const float* row[kTileRows];
  __m512 low[kTileRows];
  __m512 high[kTileRows];
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kTileRows; ++r) {
    row[r] = left.data + std::min(r, left.rows - 1) * left.row_step;
    low[r] = _mm512_setzero_ps();
    high[r] = _mm512_setzero_ps();
    for (std::int64_t lane = 0; lane < kTileColumns; lane += kLanes) {  // while it is multiplied, the result comes near
      __builtin_prefetch(target.data + std::min(r, left.rows - 1) * target.row_step + lane, 1);
    }
  }
  const std::int64_t depth = left.columns;
  for (std::int64_t k = 0; k < depth; ++k) {
    const __m512 right_low = _mm512_load_ps(right + k * kTileColumns);
    const __m512 right_high = _mm512_load_ps(right + k * kTileColumns + kLanes);
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < kTileRows; ++r) {
      const __m512 factor = _mm512_set1_ps(row[r][k * ColumnStep]);
      low[r] = _mm512_fmadd_ps(factor, right_low, low[r]);
      high[r] = _mm512_fmadd_ps(factor, right_high, high[r]);
    }
  }
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kTileRows; ++r) {
    if (r >= left.rows) break;
    if (target.columns == kTileColumns) {
      store_whole_row(target, r, low[r], high[r]);
    } else {
      store_part_of_row(target, r, low[r], high[r]);
    }
  }
}

FloatMatrix part(const FloatMatrix& whole, std::int64_t row, std::int64_t rows, std::int64_t column,
                 std::int64_t columns) {
  return {whole.data + row * whole.row_step + column * whole.column_step, std::min(rows, whole.rows - row),
          std::min(columns, whole.columns - column), whole.row_step, whole.column_step};
}

// A part of the left matrix of at most kHeight · kDepth times the rows of the right one that belong to it.
void multiply_part(const FloatMatrix& left, const FloatMatrix& right, const Addend& addend, float* result,
                   std::int64_t row_step, Packed& packed) {
  const bool is_packed = left.column_step != 1;
  if (is_packed) pack_left(left, packed.left);
  for (std::int64_t column = 0; column < right.columns; column += kTileColumns) {
    const FloatMatrix panel = part(right, 0, right.rows, column, kTileColumns);
    pack_right(panel, packed.right);
    for (std::int64_t row = 0; row < left.rows; row += kTileRows) {
      const float* const added = addend.data == nullptr ? nullptr : addend.data + row * addend.row_step + column;
      const Target target{result + row * row_step + column, row_step, {added, addend.row_step}, panel.columns};
      FloatMatrix rows = part(left, row, kTileRows, 0, left.columns);
      if (is_packed) {
        rows.data = packed.left + row * left.columns;
        rows.row_step = 1;
        multiply_tile<kTileRows>(rows, packed.right, target);
      } else {
        multiply_tile<1>(rows, packed.right, target);
      }
    }
  }
}

}  // namespace

bool has_wide_product() {
  static const bool has = __builtin_cpu_supports("avx512f") && !__builtin_cpu_is("intel");
  return has;
}

void wide_product(const FloatMatrix& left, const FloatMatrix& right, const Addend& addend, float* result,
                  std::int64_t row_step) {
  EVERSTEP_CHECK(left.columns == right.rows && left.columns > 0, "factors fit together");
  thread_local const auto packed = std::make_unique<Packed>();
  for (std::int64_t row = 0; row < left.rows; row += kHeight) {
    float* const rows = result + row * row_step;
    Addend added = addend;
    if (added.data != nullptr) added.data += row * addend.row_step;
    for (std::int64_t k = 0; k < left.columns; k += kDepth) {
      multiply_part(part(left, row, kHeight, k, kDepth), part(right, k, kDepth, 0, right.columns), added, rows,
                    row_step, *packed);
      added = {rows, row_step};
    }
  }
}

#else

bool has_wide_product() { return false; }

void wide_product(const FloatMatrix&, const FloatMatrix&, const Addend&, float*, std::int64_t) {
  EVERSTEP_CHECK(false, "this CPU has wide products");
}

#endif

}  // namespace everstep::trainer
