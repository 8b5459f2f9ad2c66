#include "launcher/command_program.h"
#include "launcher/commands/commands.h"

int main(int argc, char** argv) {
  using namespace everstep::launcher;
  return static_cast<int>(run_as_program(all_commands(), {argv + 1, argv + argc}));
}
