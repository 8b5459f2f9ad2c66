#include "launcher/doctor/place.h"

#include <algorithm>
#include <array>
#include <fstream>

#include "base/random.h"
#include "launcher/cli/files.h"
#include "launcher/cli/process_table.h"
#include "launcher/cli/signal_watch.h"
#include "launcher/rehearse/chaos/waiting.h"
#include "launcher/worker/doctor/measured_model.h"

namespace everstep::launcher::doctor {
namespace {

constexpr std::size_t kTailBytes = 4000;
constexpr std::size_t kMostLogs = 20;

// "" of a file that cannot be read.
std::string end_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return {};
  const auto size = static_cast<std::size_t>(file.tellg());
  std::string text(std::min(size, kTailBytes), '\0');
  file.seekg(static_cast<std::streamoff>(size - text.size()));
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  return text;
}

}  // namespace

std::string Place::device_text() const {
  return device.number ? device.kind + ":" + std::to_string(*device.number) : device.kind;
}

int Place::workers(int most_on_host) const {
  constexpr int kMost = 8;
  return device.is_host() ? most_on_host : std::min(devices, kMost);
}

Status wait_for_end(ChildProcess& program, std::chrono::milliseconds limit) {
  const SignalWatch signals;
  const auto ended = chaos::Waiting(signals).becomes_true([&] { return !program.is_running(); }, limit);
  if (ended && *ended) return {};
  program.stop(std::chrono::seconds(2));
  end_orphans();
  if (!ended) return ended.error();
  return Error{ErrorCode::kDeadlineExceeded,
               "it does not end within " + std::to_string(limit.count() / 1000) + " s, and was killed", ""};
}

std::vector<LogTail> log_tails(const std::filesystem::path& place) {
  std::error_code error;
  std::vector<std::filesystem::path> logs;
  if (!std::filesystem::is_directory(place, error)) logs.push_back(place);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(place, error)) {
    if (entry.path().extension() == ".log") logs.push_back(entry.path());
  }
  std::sort(logs.begin(), logs.end());
  logs.resize(std::min(logs.size(), kMostLogs));
  std::vector<LogTail> tails;
  for (const auto& log : logs) {
    std::string text = end_of(log);
    if (!text.empty()) tails.push_back({log.string(), std::move(text)});
  }
  return tails;
}

Status write_corpus(const std::filesystem::path& directory) {
  constexpr std::size_t kBytes = 200'000;
  constexpr std::array kWords{"spring", "water", "stone", "seven", "paper",
                              "north",  "under", "light", "river", "often"};
  const RandomStream stream{1, 1};
  std::string text;
  for (std::uint64_t i = 0; text.size() < kBytes; ++i) {
    text.append(kWords[stream.below(i, kWords.size())]).append(i % 12 == 11 ? ".\n" : " ");
  }
  return write_file((directory / kDoctorText).string(), text);
}

}  // namespace everstep::launcher::doctor
