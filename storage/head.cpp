#include "storage/head.h"

#include <limits>

#include "storage/bounds.h"

namespace everstep::storage {

Status check(const Head& head) {
  EVERSTEP_TRY(check_job_name(head.job));
  EVERSTEP_TRY(check_range("sequence", head.sequence, 1, std::numeric_limits<std::int64_t>::max() - 1));
  EVERSTEP_TRY(check_bounds(head.checkpoint));
  if (head.sequence == 1 && head.previous) {
    return invalid_argument("sequence is 1, the first, and yet there is a previous manifest");
  }
  return {};
}

}  // namespace everstep::storage
