#pragma once

#include <chrono>

#include "base/result.h"
#include "trainer/checkpoints/checkpoint.h"
#include "trainer/wire/transport.h"

namespace everstep::trainer {

// Tells another worker where to go on, which is not inside a live checkpoint. Both sides give the same header, of which
// kind and length are set here. What send_resume did not send is refused.
void send_resume(Transport& transport, int to, const FrameHeader& header, const ResumePoint& resume);
Result<ResumePoint> receive_resume(Transport& transport, int from, const FrameHeader& header,
                                   std::chrono::milliseconds timeout);

}  // namespace everstep::trainer
