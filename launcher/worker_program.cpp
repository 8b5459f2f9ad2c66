#include "launcher/worker_program.h"

#include <algorithm>
#include <array>
#include <iostream>
#include <string_view>

#include <fcntl.h>

#include "launcher/cli/command.h"
#include "launcher/proof/replay_program.h"
#include "launcher/worker/control_socket.h"
#include "launcher/worker/device_list.h"
#include "launcher/worker/doctor/doctor_role.h"
#include "launcher/worker/elastic_worker.h"
#include "launcher/worker/worker.h"

namespace everstep::launcher {
namespace {

// What needs LibTorch, by the first argument. Without one of these: a worker of a fixed set, which has a supervisor.
struct Role {
  std::string_view name;
  ExitCode (*run)(const std::vector<std::string>& args);
};
constexpr std::array kRoles{Role{kDeviceListRole, print_device_list}, Role{kDoctorRole, run_doctor_role},
                            Role{"elastic", run_elastic_worker}, Role{"replay", run_replay_program}};

}  // namespace

ExitCode run_worker_program(const std::vector<std::string>& args) {
  const auto* role = std::find_if(kRoles.begin(), kRoles.end(),
                                  [&](const Role& one) { return !args.empty() && args.front() == one.name; });
  if (role != kRoles.end()) return role->run({args.begin() + 1, args.end()});
  if (::fcntl(kControlDescriptor, F_GETFD) >= 0) return run_worker(args);
  print_error(std::cerr, invalid_argument("everstep-worker is started by everstep train"));
  return ExitCode::kUsage;
}

}  // namespace everstep::launcher
