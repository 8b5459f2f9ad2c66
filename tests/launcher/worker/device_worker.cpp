// everstep-worker on a host whose devices are fake accelerators, called "fake": all else about it is the product's.
// Each process has one of its own, whatever its number. The first mistake that the accelerator finds ends the process.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "launcher/worker_program.h"
#include "tests/accelerator/fake_device.h"
#include "trainer/torch/devices.h"

namespace {

std::int64_t number_from(const char* variable, std::int64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoll(text);
}

everstep::trainer::DeviceKind fake_devices() {
  everstep::trainer::DeviceKind kind;
  kind.name = "fake";
  kind.list = [] {
    constexpr std::int64_t kDevices = 8;
    constexpr std::int64_t kMib = 4096;
    const everstep::trainer::DeviceFacts one{"fake accelerator", number_from("FAKE_DEVICE_MIB", kMib) << 20};
    const auto count = static_cast<std::size_t>(number_from("FAKE_DEVICES", kDevices));
    return everstep::Result(std::vector<everstep::trainer::DeviceFacts>(count, one));
  };
  kind.torch_name = [](int /*number*/) { return everstep::accelerator::fake_device().str(); };
  return kind;
}

}  // namespace

int main(int argc, char** argv) {
  everstep::accelerator::register_fake_accelerator();
  everstep::trainer::add_device_kind(fake_devices());
  return static_cast<int>(everstep::launcher::run_worker_program({argv + 1, argv + argc}));
}
