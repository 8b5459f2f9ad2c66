#pragma once

#include <string>

#include <c10/core/Device.h>

namespace everstep::trainer {

// The device of that kind and number as LibTorch names it; "cpu" is the host, whatever the number.
c10::Device torch_device(const std::string& kind, int number);

}  // namespace everstep::trainer
