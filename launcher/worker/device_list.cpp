#include "launcher/worker/device_list.h"

#include <iostream>

#include "storage/json/json.h"
#include "trainer/nccl/nccl_api.h"
#include "trainer/torch/devices.h"

namespace everstep::launcher {

ExitCode print_device_list(const std::vector<std::string>& args) {
  if (args.size() != 1) return ExitCode::kUsage;
  const auto devices = trainer::list_devices(args.front());
  storage::Json answer = storage::Json::object();
  if (devices) {
    const auto nccl = trainer::find_nccl(args.front());
    storage::Json list = storage::Json::array();
    for (const trainer::DeviceFacts& device : *devices) {
      list.append(storage::Json::object().set("name", device.name).set("memory_bytes", device.memory_bytes));
    }
    answer.set("devices", std::move(list)).set("no_nccl", nccl ? "" : nccl.error().message);
  } else {
    answer.set("error", devices.error().message).set("hint", devices.error().hint);
  }
  // A line of its own: libraries may have written something before.
  std::cout << "\n" << to_text(answer, 0) << "\n" << std::flush;
  return std::cout ? ExitCode::kDone : ExitCode::kInternal;
}

}  // namespace everstep::launcher
