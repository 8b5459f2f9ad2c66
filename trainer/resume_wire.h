#pragma once

#include <cstddef>

#include "base/result.h"
#include "trainer/checkpoint.h"

namespace everstep::trainer {

// Where to go on, for those who were not there: as bytes of a frame. Of a live checkpoint there is no such form.
inline constexpr std::size_t kLargestResume = std::size_t{256} << 20;
Buffer encode_resume(const ResumePoint& resume);

// Refuses anything that encode_resume did not make.
Result<ResumePoint> decode_resume(const Buffer& bytes);

}  // namespace everstep::trainer
