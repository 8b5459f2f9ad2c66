#include "launcher/cli/process_table.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <thread>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"

namespace everstep::launcher {
namespace {

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

// Ascending.
std::vector<pid_t> all_processes() {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto process = parse_number<pid_t>(entry.path().filename().string());
    if (process) found.push_back(*process);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<pid_t> all_children(pid_t parent) {
  std::vector<pid_t> found = all_processes();
  std::erase_if(found, [&](pid_t process) {
    const auto line = process_line(process);
    return !line || line->parent != parent;
  });
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

bool lives(pid_t process) {
  const auto line = process_line(process);
  return line && line->lives();
}

std::vector<pid_t> living_children(pid_t parent) {
  std::vector<pid_t> found = all_children(parent);
  std::erase_if(found, [](pid_t process) { return !lives(process); });
  return found;
}

std::vector<std::string> arguments_of(pid_t process) {
  std::ifstream file(process_file(process, "cmdline"));
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  if (!words.empty()) words.erase(words.begin());
  return words;
}

std::vector<pid_t> processes_naming(const std::string& text) {
  std::vector<pid_t> found = all_processes();
  std::erase_if(found, [&](pid_t process) {
    const std::vector<std::string> words = arguments_of(process);
    return std::none_of(words.begin(), words.end(),
                        [&](const std::string& word) { return word.find(text) != std::string::npos; });
  });
  return found;
}

std::optional<ProcessUse> use_of(pid_t process) {
  if (!lives(process)) return std::nullopt;
  constexpr std::int64_t kKibibyte = 1024;
  ProcessUse use;
  use.resident_bytes = status_number(process, "VmRSS") * kKibibyte;
  use.threads = static_cast<int>(status_number(process, "Threads"));
  std::error_code error;
  const std::filesystem::directory_iterator descriptors(process_file(process, "fd"), error);
  use.descriptors = static_cast<int>(std::distance(begin(descriptors), end(descriptors)));
  return use;
}

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::vector<pid_t> living_orphans() {
  std::vector<pid_t> found;
  for (const pid_t child : all_children(::getpid())) {
    if (::waitpid(child, nullptr, WNOHANG) == 0) found.push_back(child);
  }
  return found;
}

void end_orphans() {
  constexpr std::chrono::milliseconds kLookAgain{10};
  for (auto left = living_orphans(); !left.empty(); left = living_orphans()) {
    for (const pid_t process : left) ::kill(process, SIGKILL);
    std::this_thread::sleep_for(kLookAgain);
  }
}

}  // namespace everstep::launcher
