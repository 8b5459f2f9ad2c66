#include <iostream>
#include <string>
#include <vector>

#include <fcntl.h>

#include "launcher/command.h"
#include "launcher/train/worker.h"
#include "launcher/train/worker_group.h"

int main(int argc, char** argv) {
  using everstep::launcher::ExitCode;
  if (::fcntl(everstep::launcher::kControlDescriptor, F_GETFD) < 0) {
    everstep::launcher::print_error(std::cerr,
                                    everstep::invalid_argument("everstep-worker is started by everstep train"));
    return static_cast<int>(ExitCode::kUsage);
  }
  return static_cast<int>(everstep::launcher::run_worker({argv + 1, argv + argc}));
}
