// everstep-worker on a host whose devices are fake accelerators, called "fake": all else about it is the product's.
// Each process has one of its own, whatever its number. Those of another FAKE_HOST are other devices. The first mistake
// that the accelerator finds ends the process.

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "launcher/worker_program.h"
#include "tests/accelerator/emulated_nccl.h"
#include "tests/accelerator/fake_device.h"
#include "tests/accelerator/operators.h"
#include "trainer/nccl/nccl_api.h"
#include "trainer/torch/devices.h"

namespace {

std::int64_t number_from(const char* variable, std::int64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoll(text);
}

// By its number.
std::atomic<int> used_last{0};

everstep::trainer::DeviceKind fake_devices() {
  everstep::trainer::DeviceKind kind;
  kind.name = "fake";
  kind.list = [] {
    constexpr std::int64_t kDevices = 8;
    constexpr std::int64_t kMib = 4096;
    const everstep::trainer::DeviceFacts one{"fake accelerator", number_from("FAKE_DEVICE_MIB", kMib) << 20};
    const auto count = static_cast<std::size_t>(number_from("FAKE_DEVICES", kDevices));
    std::vector<everstep::trainer::DeviceFacts> all(count, one);
    for (std::size_t i = 0; i < count; ++i) {
      all[i].id = std::to_string(number_from("FAKE_HOST", 0)) + "-" + std::to_string(i);
    }
    return everstep::Result(std::move(all));
  };
  kind.torch_name = [](int number) {
    used_last = number;
    return everstep::accelerator::fake_device().str();
  };
  // In a device that takes more for the same things, the factor is larger.
  kind.bytes_in_use = [](int /*number*/) -> std::optional<std::int64_t> {
    return static_cast<std::int64_t>(everstep::accelerator::fake_accelerator().device_bytes()) *
           number_from("FAKE_MEMORY_FACTOR", 1);
  };
  return kind;
}

constexpr std::int64_t kNccl = 23007;

everstep::trainer::NcclApi fake_nccl() {
  everstep::accelerator::EmulatedNcclOptions options;
  options.version = static_cast<int>(number_from("FAKE_NCCL", kNccl));
  auto api = everstep::accelerator::emulated_nccl(everstep::accelerator::fake_accelerator(), options);
  // FAKE_LOST_DEVICE=N: it is listed, and cannot be used any more.
  api.set_device = [use = std::move(api.set_device), lost = number_from("FAKE_LOST_DEVICE", -1)](int device) {
    if (device != lost) return use(device);
    return everstep::trainer::NcclOutcome{everstep::trainer::NcclOutcome::State::kFailed, "it has fallen off the bus"};
  };
  return api;
}

// FAKE_WRONG_OPERATOR=NAME: that operator writes a wrong bit, always, or with FAKE_WRONG_DEVICE=N on that device alone;
// NAME:FILE once, of all processes that which makes the file.
void spoil_as_asked() {
  const char* variable = std::getenv("FAKE_WRONG_OPERATOR");
  if (variable == nullptr) return;
  const std::string text = variable;
  const std::size_t colon = text.find(':');
  const std::string file = colon == std::string::npos ? "" : text.substr(colon + 1);
  const auto device = number_from("FAKE_WRONG_DEVICE", -1);
  everstep::accelerator::spoil_operator("everstep::" + text.substr(0, colon), [file, device] {
    if (file.empty()) return device < 0 || device == used_last;
    const int made = ::open(file.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (made >= 0) ::close(made);
    return made >= 0;
  });
}

// FAKE_STUCK=PREFIX: once there is a file that is called so, with the process's id behind it, the stream that computes
// never ends its next GELU.
void stick_as_asked() {
  const char* variable = std::getenv("FAKE_STUCK");
  if (variable == nullptr) return;
  everstep::accelerator::spoil_operator("everstep::gelu_", [file = variable + std::to_string(::getpid())] {
    while (::access(file.c_str(), F_OK) == 0) ::pause();
    return false;
  });
}

}  // namespace

int main(int argc, char** argv) {
  everstep::accelerator::Options options;
  options.hardware_queues = static_cast<int>(number_from("FAKE_QUEUES", 0));
  everstep::accelerator::register_fake_accelerator(options);
  spoil_as_asked();
  stick_as_asked();
  everstep::trainer::add_device_kind(fake_devices());
  if (number_from("FAKE_NCCL", kNccl) > 0) everstep::trainer::add_nccl("fake", fake_nccl);
  return static_cast<int>(everstep::launcher::run_worker_program({argv + 1, argv + argc}));
}
