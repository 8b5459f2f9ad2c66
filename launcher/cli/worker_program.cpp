#include "launcher/cli/worker_program.h"

#include <cerrno>
#include <system_error>

#include <unistd.h>

#include "launcher/cli/host.h"

namespace everstep::launcher {
namespace {

constexpr const char* kProgram = "everstep-worker";

}  // namespace

Outcome become_worker_program(std::vector<std::string> args, Streams& streams) {
  streams.out.flush();
  args.insert(args.begin(), kProgram);
  std::vector<char*> pointers;
  pointers.reserve(args.size() + 1);
  for (std::string& arg : args) pointers.push_back(arg.data());
  pointers.push_back(nullptr);
  const std::string program = sibling_program(kProgram);
  ::execv(program.c_str(), pointers.data());
  return Error{ErrorCode::kUnavailable, "cannot start " + program + ": " + std::generic_category().message(errno),
               "install both programs in one directory"};
}

}  // namespace everstep::launcher
