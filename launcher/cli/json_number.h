#pragma once

#include <cmath>

#include "storage/json/json.h"

namespace everstep::launcher {

// JSON has no infinity and no NaN; a loss may be either. Readers find null there.
inline storage::Json finite_or_null(double value) {
  return std::isfinite(value) ? storage::Json(value) : storage::Json(nullptr);
}

}  // namespace everstep::launcher
