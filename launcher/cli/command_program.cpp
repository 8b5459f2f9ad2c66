#include "launcher/cli/command_program.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

#include "launcher/cli/log_time.h"
#include "launcher/cli/output.h"

namespace everstep::launcher {
namespace {

Environment read_environment() {
  Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

// 0 if the descriptor is no terminal.
std::size_t terminal_columns(int descriptor) {
  winsize size{};
  const bool is_terminal = isatty(descriptor) != 0 && ioctl(descriptor, TIOCGWINSZ, &size) == 0;
  return is_terminal ? size.ws_col : 0;
}

ExitCode run(const std::vector<Command>& commands, std::vector<std::string> args) {
  // A closed pipe must reach us as an error of write: on standard output it is no error, on a socket a peer's end.
  std::signal(SIGPIPE, SIG_IGN);
  DescriptorBuffer buffer(STDOUT_FILENO);
  std::ostream out(&buffer);
  Streams streams{
      out,     std::cerr, terminal_columns(STDERR_FILENO), isatty(STDOUT_FILENO) != 0, terminal_columns(STDOUT_FILENO),
      log_time};
  ExitCode exit_code = run_command_line(commands, {std::move(args), read_environment()}, streams);
  out.flush();
  // A reader such as `head` that left early has what it wanted.
  if (buffer.error() != 0 && buffer.error() != EPIPE && exit_code == ExitCode::kDone) {
    const Error error{ErrorCode::kUnavailable,
                      "cannot write to standard output: " + std::generic_category().message(buffer.error()), ""};
    print_error(std::cerr, error);
    exit_code = exit_code_of(error.code);
  }
  return exit_code;
}

}  // namespace

ExitCode run_as_program(const std::vector<Command>& commands, std::vector<std::string> args) {
  try {
    return run(commands, std::move(args));
  } catch (const std::exception& exception) {
    // Expected failures are Results: what arrives here is a bug or a lack of memory.
    print_error(std::cerr, {ErrorCode::kInternal, exception.what(), "please report it"});
    return ExitCode::kInternal;
  }
}

}  // namespace everstep::launcher
