#pragma once

#include "trainer/model/device_memory.h"

namespace everstep::trainer {

// The host as a device: everything is done at once, by the loops of loops.h. Has no state, so that any threads may
// share it.
DeviceMemory& host_memory();

}  // namespace everstep::trainer
