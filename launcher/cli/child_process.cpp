#include "launcher/cli/child_process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace everstep::launcher {
namespace {

// What must be made ready before the fork: after it, only system calls are safe.
struct Launch {
  std::vector<char*> words;
  std::vector<char*> environment;
  int log = -1;
  int failure = -1;  // takes the errno of an exec that failed
  pid_t parent = -1;
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

[[noreturn]] void become_program(const Launch& launch) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launch.parent) ::_exit(0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
  ::dup2(launch.log, STDOUT_FILENO);
  ::dup2(launch.log, STDERR_FILENO);
  ::execvpe(launch.words.front(), launch.words.data(), launch.environment.data());
  const int error = errno;
  if (::write(launch.failure, &error, sizeof error) < 0) ::_exit(1);
  ::_exit(1);
}

// Zero once the program runs; the errno if it cannot.
int wait_for_exec(int failure) {
  int error = 0;
  return ::read(failure, &error, sizeof error) == sizeof error ? error : 0;
}

Error cannot_start(const std::string& program, int error) {
  const std::string why = std::generic_category().message(error);
  const ErrorCode code = error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kUnavailable;
  return {code, "cannot start " + program + ": " + why, ""};
}

}  // namespace

std::vector<std::string> environment_without(std::string_view prefix) {
  std::vector<std::string> kept;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (!text.starts_with(prefix)) kept.emplace_back(text);
  }
  return kept;
}

Result<ChildProcess> ChildProcess::start(std::vector<std::string> words, const std::filesystem::path& log,
                                         std::vector<std::string> environment) {
  EVERSTEP_CHECK(!words.empty(), "nothing to start");
  constexpr int kLogMode = 0600;
  Launch launch{pointers(words), pointers(environment)};
  launch.parent = ::getpid();
  launch.log = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kLogMode);
  if (launch.log < 0) {
    const std::string why = std::generic_category().message(errno);
    return Error{ErrorCode::kUnavailable, "cannot write " + words.front() + "'s log " + log.string() + ": " + why, {}};
  }
  std::array<int, 2> failure{-1, -1};
  EVERSTEP_CHECK(::pipe2(failure.data(), O_CLOEXEC) == 0, "cannot make a pipe");
  launch.failure = failure[1];

  const pid_t pid = ::fork();
  if (pid == 0) become_program(launch);
  const int fork_error = pid < 0 ? errno : 0;
  ::close(launch.log);
  ::close(failure[1]);
  const int error = pid < 0 ? fork_error : wait_for_exec(failure[0]);
  ::close(failure[0]);
  if (error == 0) return ChildProcess(pid);
  if (pid > 0) ::waitpid(pid, nullptr, 0);
  return cannot_start(words.front(), error);
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), wait_status_(other.wait_status_) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(wait_status_, other.wait_status_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) stop(std::chrono::milliseconds(0));
}

bool ChildProcess::is_running() {
  int status = 0;
  if (!wait_status_ && ::waitpid(pid_, &status, WNOHANG) == pid_) wait_status_ = status;
  return !wait_status_;
}

bool ChildProcess::ends_within(std::chrono::milliseconds limit) {
  constexpr std::chrono::milliseconds kLook{5};
  const auto end = std::chrono::steady_clock::now() + limit;
  while (is_running() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kLook);
  return !is_running();
}

void ChildProcess::signal(int number) const {
  if (pid_ > 0 && !wait_status_) ::kill(pid_, number);
}

void ChildProcess::stop(std::chrono::milliseconds patience) {
  if (patience.count() > 0) signal(SIGTERM);
  if (ends_within(patience)) return;
  signal(SIGKILL);
  int status = 0;
  if (::waitpid(pid_, &status, 0) == pid_) wait_status_ = status;
}

}  // namespace everstep::launcher
