#include "launcher/build.h"
#include "launcher/cli/command_program.h"
#include "launcher/commands/commands.h"

int main(int argc, char** argv) {
  namespace launcher = everstep::launcher;
  launcher::tell_build(launcher::kBuild);
  return static_cast<int>(launcher::run_as_program(launcher::all_commands(), {argv + 1, argv + argc}));
}
