#include <algorithm>
#include <array>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>

#include "launcher/cli/command.h"
#include "launcher/proof/replay_program.h"
#include "launcher/worker/control_socket.h"
#include "launcher/worker/elastic_worker.h"
#include "launcher/worker/worker.h"

namespace {

using everstep::launcher::ExitCode;
using Args = std::vector<std::string>;

// What needs LibTorch, by the first argument. Without one of these: a worker of a fixed set, which has a supervisor.
struct Role {
  std::string_view name;
  ExitCode (*run)(const Args& args);
};
constexpr std::array kRoles{Role{"elastic", everstep::launcher::run_elastic_worker},
                            Role{"replay", everstep::launcher::run_replay_program}};

ExitCode run(const Args& args) {
  const auto* role = std::find_if(kRoles.begin(), kRoles.end(),
                                  [&](const Role& one) { return !args.empty() && args.front() == one.name; });
  if (role != kRoles.end()) return role->run({args.begin() + 1, args.end()});
  if (::fcntl(everstep::launcher::kControlDescriptor, F_GETFD) >= 0) return everstep::launcher::run_worker(args);
  everstep::launcher::print_error(std::cerr,
                                  everstep::invalid_argument("everstep-worker is started by everstep train"));
  return ExitCode::kUsage;
}

}  // namespace

int main(int argc, char** argv) { return static_cast<int>(run({argv + 1, argv + argc})); }
