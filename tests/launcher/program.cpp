#include "tests/launcher/program.h"

#include <cstdio>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"

namespace everstep::launcher {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::string content(std::FILE* file) {
  std::rewind(file);
  std::string text;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  std::fclose(file);
  return text;
}

// The program's exit code; its standard streams are the two descriptors.
int spawn_and_wait(std::vector<std::string> args, std::vector<std::string> environment, int out, int log) {
  args.insert(args.begin(), EVERSTEP_PROGRAM);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, log, STDERR_FILENO);
  pid_t child = 0;
  const int error =
      posix_spawn(&child, EVERSTEP_PROGRAM, &actions, nullptr, pointers(args).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  EVERSTEP_CHECK(error == 0, "cannot start the program");
  int status = 0;
  EVERSTEP_CHECK(waitpid(child, &status, 0) == child, "cannot wait for the program");
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

Ended run_program(const std::vector<std::string>& args, const std::vector<std::string>& environment) {
  std::FILE* out = std::tmpfile();
  std::FILE* log = std::tmpfile();
  EVERSTEP_CHECK(out != nullptr && log != nullptr, "cannot make temporary files");
  const int exit_code = spawn_and_wait(args, environment, fileno(out), fileno(log));
  return {exit_code, content(out), content(log)};
}

Ended run_program_into(const std::string& device, const std::vector<std::string>& args) {
  int ends[2] = {-1, -1};
  if (device.empty()) {
    EVERSTEP_CHECK(pipe(ends) == 0, "cannot make a pipe");
    close(ends[0]);
  } else {
    ends[1] = open(device.c_str(), O_WRONLY | O_CLOEXEC);
  }
  std::FILE* log = std::tmpfile();
  const int exit_code = spawn_and_wait(args, {}, ends[1], fileno(log));
  close(ends[1]);
  return {exit_code, "", content(log)};
}

}  // namespace everstep::launcher
