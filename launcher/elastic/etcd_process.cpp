#include "launcher/elastic/etcd_process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <random>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace everstep::launcher {
namespace {

constexpr const char* kProgram = "etcd";

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// etcd takes options from the environment too; those were not meant for ours.
std::vector<std::string> environment_without_etcd() {
  std::vector<std::string> kept;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (!text.starts_with("ETCD_") || text.starts_with("ETCD_UNSUPPORTED_ARCH=")) kept.emplace_back(text);
  }
  return kept;
}

// What must be made ready before the fork: after it, only system calls are safe.
struct Launch {
  std::vector<char*> args;
  std::vector<char*> environment;
  int log = -1;
  int failure = -1;  // takes the errno of an exec that failed
  pid_t parent = -1;
};

[[noreturn]] void become_etcd(const Launch& launch) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launch.parent) ::_exit(0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(launch.log, STDOUT_FILENO);
  ::dup2(launch.log, STDERR_FILENO);
  ::execvpe(kProgram, launch.args.data(), launch.environment.data());
  const int error = errno;
  if (::write(launch.failure, &error, sizeof error) < 0) ::_exit(1);
  ::_exit(1);
}

// Zero once the program runs; the errno if it cannot.
int wait_for_exec(int failure) {
  int error = 0;
  return ::read(failure, &error, sizeof error) == sizeof error ? error : 0;
}

Error cannot_start(int error) {
  const std::string message = "cannot start etcd: " + std::generic_category().message(error);
  if (error == ENOENT) return not_found("there is no program etcd here", "install the package etcd-server");
  return {ErrorCode::kUnavailable, message, {}};
}

}  // namespace

Result<EtcdProcess> EtcdProcess::start(const std::vector<std::string>& args, const std::filesystem::path& log) {
  std::vector<std::string> words = args;
  words.insert(words.begin(), kProgram);
  std::vector<std::string> environment = environment_without_etcd();
  constexpr int kLogMode = 0600;
  Launch launch{pointers(words), pointers(environment)};
  launch.parent = ::getpid();
  launch.log = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kLogMode);
  if (launch.log < 0) {
    return Error{ErrorCode::kUnavailable,
                 "cannot write etcd's log " + log.string() + ": " + std::generic_category().message(errno),
                 {}};
  }
  std::array<int, 2> failure{-1, -1};
  EVERSTEP_CHECK(::pipe2(failure.data(), O_CLOEXEC) == 0, "cannot make a pipe");
  launch.failure = failure[1];

  const pid_t pid = ::fork();
  if (pid == 0) become_etcd(launch);
  const int fork_error = pid < 0 ? errno : 0;
  ::close(launch.log);
  ::close(failure[1]);
  const int error = pid < 0 ? fork_error : wait_for_exec(failure[0]);
  ::close(failure[0]);
  if (error == 0) return EtcdProcess(pid);
  if (pid > 0) ::waitpid(pid, nullptr, 0);
  return cannot_start(error);
}

EtcdProcess::EtcdProcess(EtcdProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}

EtcdProcess& EtcdProcess::operator=(EtcdProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  return *this;
}

bool EtcdProcess::is_running() {
  if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) != 0) pid_ = -1;
  return pid_ > 0;
}

void EtcdProcess::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

void EtcdProcess::stop(std::chrono::milliseconds patience) {
  if (!is_running()) return;
  signal(SIGTERM);
  const auto limit = std::chrono::steady_clock::now() + patience;
  while (is_running() && std::chrono::steady_clock::now() < limit) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  signal(SIGKILL);
  if (pid_ > 0) ::waitpid(std::exchange(pid_, -1), nullptr, 0);
}

int unused_port() {
  constexpr int kLowest = 10'000;
  constexpr int kHighest = 30'000;
  std::random_device device;
  while (true) {
    const int port = std::uniform_int_distribution(kLowest, kHighest)(device);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EVERSTEP_CHECK(socket >= 0, "cannot make a socket");
    const bool is_free = ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    ::close(socket);
    if (is_free) return port;
  }
}

}  // namespace everstep::launcher
