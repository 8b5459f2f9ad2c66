#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "base/result.h"
#include "trainer/checkpoint.h"
#include "trainer/transport.h"

namespace everstep::trainer {

// Where to go on, for those who were not there: as bytes of a frame. Of a live checkpoint there is no such form.
inline constexpr std::size_t kLargestResume = std::size_t{256} << 20;
Buffer encode_resume(const ResumePoint& resume);

// Refuses anything that encode_resume did not make.
Result<ResumePoint> decode_resume(const Buffer& bytes);

// Tells another worker where to go on, or that there is no such place. Both sides give the same header, of which kind
// and length are set here.
void send_resume(Transport& transport, int to, FrameHeader header, const std::optional<ResumePoint>& resume);
Result<std::optional<ResumePoint>> receive_resume(Transport& transport, int from, FrameHeader header,
                                                  std::chrono::milliseconds timeout);

}  // namespace everstep::trainer
