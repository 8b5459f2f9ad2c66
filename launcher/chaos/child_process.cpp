#include "launcher/chaos/child_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "launcher/train/signal_watch.h"

namespace everstep::launcher::chaos {
namespace {

// What must be made ready before the fork: after it, only system calls are safe.
struct Launch {
  std::vector<char*> words;
  std::vector<char*> environment;
  int log = -1;
  int failure = -1;  // takes the errno of an exec that failed
  pid_t parent = -1;
};

// What people set for their own jobs must not change ours.
std::vector<char*> environment_without_everstep() {
  std::vector<char*> kept;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (!text.starts_with("EVERSTEP_")) kept.push_back(*variable);
  }
  kept.push_back(nullptr);
  return kept;
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

Error cannot_start(const std::string& program, int error) {
  const std::string why = std::generic_category().message(error);
  const ErrorCode code = error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kUnavailable;
  return {code, "cannot start " + program + ": " + why, ""};
}

struct ProcessLine {
  char state = 0;
  pid_t parent = 0;

  bool lives() const { return state != 'Z' && state != 'X'; }
};

std::string process_file(pid_t process, const std::string& name) {
  return "/proc/" + std::to_string(process) + "/" + name;
}

std::optional<ProcessLine> process_line(pid_t process) {
  std::ifstream file(process_file(process, "stat"));
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  // The name before it may hold anything but ends with the last bracket.
  std::istringstream rest(text.substr(text.rfind(')') + 1));
  ProcessLine line;
  rest >> line.state >> line.parent;
  return line;
}

std::vector<pid_t> all_children(pid_t parent) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto process = parse_number<pid_t>(entry.path().filename().string());
    const auto line = process ? process_line(*process) : std::nullopt;
    if (line && line->parent == parent) found.push_back(*process);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::int64_t status_number(pid_t process, const std::string& name) {
  std::ifstream file(process_file(process, "status"));
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name + ":")) continue;
    std::istringstream value(line.substr(name.size() + 1));
    std::int64_t number = 0;
    value >> number;
    return number;
  }
  return 0;
}

}  // namespace

Result<ChildProcess> ChildProcess::start(std::vector<std::string> words, const std::filesystem::path& log) {
  EVERSTEP_CHECK(!words.empty(), "nothing to start");
  Launch launch;
  for (std::string& word : words) launch.words.push_back(word.data());
  launch.words.push_back(nullptr);
  launch.environment = environment_without_everstep();
  launch.parent = ::getpid();
  constexpr int kLogMode = 0600;
  launch.log = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kLogMode);
  if (launch.log < 0) return Error{ErrorCode::kUnavailable, "cannot write " + log.string(), ""};
  std::array<int, 2> failure{-1, -1};
  EVERSTEP_CHECK(::pipe2(failure.data(), O_CLOEXEC) == 0, "cannot make a pipe");
  launch.failure = failure[1];

  const pid_t pid = ::fork();
  if (pid == 0) become_program(launch);
  int error = pid < 0 ? errno : 0;
  ::close(launch.log);
  ::close(failure[1]);
  int told = 0;
  if (pid > 0 && ::read(failure[0], &told, sizeof told) == sizeof told) error = told;
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
  if (pid_ <= 0 || wait_status_) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
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

std::string end_text(int wait_status) {
  if (WIFSIGNALED(wait_status)) return signal_name(WTERMSIG(wait_status));
  return "exit code " + std::to_string(WEXITSTATUS(wait_status));
}

std::optional<ProcessUse> use_of(pid_t process) {
  const auto line = process_line(process);
  if (!line || !line->lives()) return std::nullopt;
  constexpr std::int64_t kKibibyte = 1024;
  ProcessUse use;
  use.resident_bytes = status_number(process, "VmRSS") * kKibibyte;
  use.threads = static_cast<int>(status_number(process, "Threads"));
  std::error_code error;
  const std::filesystem::directory_iterator descriptors(process_file(process, "fd"), error);
  use.descriptors = static_cast<int>(std::distance(begin(descriptors), end(descriptors)));
  return use;
}

std::vector<pid_t> living_children(pid_t parent) {
  std::vector<pid_t> found = all_children(parent);
  std::erase_if(found, [](pid_t process) {
    const auto line = process_line(process);
    return !line || !line->lives();
  });
  return found;
}

std::vector<std::string> arguments_of(pid_t process) {
  std::ifstream file(process_file(process, "cmdline"));
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  if (!words.empty()) words.erase(words.begin());
  return words;
}

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::vector<pid_t> living_orphans() {
  std::vector<pid_t> found;
  for (const pid_t child : all_children(::getpid())) {
    if (::waitpid(child, nullptr, WNOHANG) == 0) found.push_back(child);
  }
  return found;
}

}  // namespace everstep::launcher::chaos
