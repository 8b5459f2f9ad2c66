#include <string>
#include <vector>

#include "launcher/cli/worker_program.h"
#include "launcher/commands/commands.h"
#include "launcher/proof/replay_spec.h"

namespace everstep::launcher {
namespace {

std::vector<std::string> arguments_of(const Config& config) {
  std::vector<std::string> args{config.command};
  for (const OptionSpec& option : replay_spec().options) {
    if (config.is_set(option.name)) args.push_back("--" + option.name + "=" + *config.setting(option.name).text);
  }
  args.emplace_back("--");
  args.insert(args.end(), config.positional.begin(), config.positional.end());
  return args;
}

Outcome run(const Config& config, Streams& streams) { return become_worker_program(arguments_of(config), streams); }

}  // namespace

Command replay_command() { return {replay_spec(), run}; }

}  // namespace everstep::launcher
