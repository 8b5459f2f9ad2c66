#include "tests/launcher/program.h"

#include <csignal>
#include <cstdlib>
#include <thread>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "launcher/cli/process_table.h"
#include "tests/send_signal.h"

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

// Starts a program; its standard streams are the two descriptors.
pid_t spawn_words(std::vector<std::string> words, std::vector<std::string> environment, int out, int log) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, log, STDERR_FILENO);
  // What a shell in the background makes tests ignore must not be ignored by what they start.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t not_ignored;
  sigemptyset(&not_ignored);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&not_ignored, signal);
  posix_spawnattr_setsigdefault(&attributes, &not_ignored);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  const int error = posix_spawnp(&child, words[0].c_str(), &actions, &attributes, pointers(words).data(),
                                 pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  EVERSTEP_CHECK(error == 0, "cannot start the program");
  return child;
}

pid_t spawn(const std::vector<std::string>& args, std::vector<std::string> environment, int out, int log,
            std::vector<std::string> wrapper = {}) {
  const char* other = std::getenv("TEST_PROGRAM");
  wrapper.emplace_back(other != nullptr ? other : EVERSTEP_PROGRAM);
  wrapper.insert(wrapper.end(), args.begin(), args.end());
  // Fake devices are this test's own, as if its host were: others run beside it.
  environment.push_back("FAKE_HOST=" + std::to_string(::getpid()));
  return spawn_words(std::move(wrapper), std::move(environment), out, log);
}

int exit_code_of(int wait_status) { return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -WTERMSIG(wait_status); }

int wait_for(pid_t child) {
  int status = 0;
  EVERSTEP_CHECK(waitpid(child, &status, 0) == child, "cannot wait for the program");
  return exit_code_of(status);
}

int spawn_and_wait(const std::vector<std::string>& args, const std::vector<std::string>& environment, int out,
                   int log) {
  return wait_for(spawn(args, environment, out, log));
}

}  // namespace

Ended run_program(const std::vector<std::string>& args, const std::vector<std::string>& environment) {
  std::FILE* out = std::tmpfile();
  std::FILE* log = std::tmpfile();
  EVERSTEP_CHECK(out != nullptr && log != nullptr, "cannot make temporary files");
  const int exit_code = spawn_and_wait(args, environment, fileno(out), fileno(log));
  return {exit_code, content(out), content(log)};
}

Ended run_program_under(const std::vector<std::string>& wrapper, const std::vector<std::string>& args) {
  std::FILE* out = std::tmpfile();
  std::FILE* log = std::tmpfile();
  EVERSTEP_CHECK(out != nullptr && log != nullptr, "cannot make temporary files");
  const int exit_code = wait_for(spawn(args, {}, fileno(out), fileno(log), wrapper));
  return {exit_code, content(out), content(log)};
}

RunningProgram::RunningProgram(const std::vector<std::string>& args, const std::vector<std::string>& environment,
                               std::vector<std::string> wrapper)
    : out_(std::tmpfile()),
      log_(std::tmpfile()),
      pid_(spawn(args, environment, fileno(out_), fileno(log_), std::move(wrapper))) {}

RunningProgram::~RunningProgram() {
  if (pid_ > 0) wait(std::chrono::seconds(0));
}

std::vector<pid_t> RunningProgram::children() const { return living_children(pid_); }

void RunningProgram::signal(int number) const { send_signal(pid_, number); }

// The place in the file is the program's own: it must not be moved.
std::string RunningProgram::log() const {
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::pread(fileno(log_), buffer, sizeof buffer, std::ssize(text))) > 0;) {
    text.append(buffer, got);
  }
  return text;
}

Ended RunningProgram::wait(std::chrono::seconds limit) {
  EVERSTEP_CHECK(pid_ > 0, "its end was waited for already");
  if (!is_gone_within(pid_, limit)) signal(SIGKILL);
  int status = 0;
  EVERSTEP_CHECK(waitpid(pid_, &status, 0) == pid_, "cannot wait for the program");
  pid_ = -1;
  return {exit_code_of(status), content(out_), content(log_)};
}

std::vector<std::string> paced(std::vector<std::string> environment, std::chrono::microseconds pace) {
  environment.push_back("TEST_PACE_US=" + std::to_string(pace.count()));
  return environment;
}

void replace_options(std::vector<std::string>& words, const std::vector<std::string>& more) {
  const auto name_of = [](const std::string& option) { return option.substr(0, option.find('=')); };
  for (const std::string& option : more) {
    std::erase_if(words, [&](const std::string& word) { return name_of(word) == name_of(option); });
    words.push_back(option);
  }
}

bool is_gone_within(pid_t process, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (lives(process)) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
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
