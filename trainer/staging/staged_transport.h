#pragma once

#include <memory>

#include "trainer/model/device_memory.h"
#include "trainer/wire/transport.h"

namespace everstep::trainer {

// Carries frames whose payload lies on a device over a transport of the host, through pinned memory. A send starts the
// copy and returns; a thread hands the frame over when the copy has come. wait() waits for the frame, and starts the
// copy to the device: whatever the device does next finds the payload in the buffer, and nobody waits for the device.
// A frame from a worker to itself stays on the device. What lies on the host passes by as it is.
//
// The calling thread is the one that `memory` belongs to. Both it and `host` must outlive the transport, and `host` is
// to be used by nobody else meanwhile, but for abort(). What was not flushed when it ends is lost.
std::unique_ptr<Transport> make_staged_transport(Transport& host, DeviceMemory& memory);

}  // namespace everstep::trainer
