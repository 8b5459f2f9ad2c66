#include "launcher/rehearse/chaos/fault.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"

namespace everstep::launcher::chaos {
namespace {

using std::chrono::milliseconds;

constexpr int kMostPick = 1000;
constexpr int kMostNumber = 16;
constexpr double kLongest = 3600;

// The first word of a text, which loses it.
std::string_view take_word(std::string_view& text) {
  text = trimmed(text);
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text = text.substr(end);
  return word;
}

Error wrong_fault(std::string_view word, const std::string& why) {
  return invalid_argument("'" + std::string(word) + "': " + why, "everstep chaos --help lists all faults");
}

// The value of `name=` in this word; nothing if it is another word.
std::optional<std::string_view> value_in(std::string_view word, std::string_view name) {
  const bool fits = !name.empty() && word.starts_with(name) && word.substr(name.size()).starts_with('=');
  return fits ? std::optional(word.substr(name.size() + 1)) : std::nullopt;
}

Status read_bounded(std::string_view word, std::string_view text, int lowest, int highest, int& value) {
  const auto number = parse_number<int>(text);
  if (!number || *number < lowest || *number > highest) {
    return wrong_fault(word, "expected an integer" + range_text(lowest, highest));
  }
  value = *number;
  return {};
}

Status read_value(std::string_view word, const FaultForm& form, Fault& fault) {
  if (const auto pick = value_in(word, form.picks ? "pick" : "")) {
    return read_bounded(word, *pick, 0, kMostPick, fault.pick);
  }
  if (const auto number = value_in(word, form.number)) {
    return read_bounded(word, *number, -kMostNumber, kMostNumber, fault.number);
  }
  const auto lasts = value_in(word, form.lasts ? "for" : "");
  if (!lasts) return wrong_fault(word, "is no value of " + std::string(form.name));
  const auto time = parse_seconds(*lasts);
  if (!time) return time.error();
  fault.lasts = *time;
  return {};
}

}  // namespace

const std::vector<FaultForm>& all_forms() {
  static const std::vector<FaultForm> forms{
      {FaultKind::kKillWorker, "kill-worker", "SIGKILL to a worker", true},
      {FaultKind::kKillLeader, "kill-leader", "SIGKILL to the worker that leads"},
      {FaultKind::kKillTwo, "kill-two", "SIGKILL to two workers at once", true},
      {FaultKind::kKillAgain,
       "kill-again",
       "SIGKILL to a worker, and to another while the first is recovered from",
       true,
       {},
       true},
      {FaultKind::kKillAll, "kill-all", "SIGKILL to all workers, and others start", false, "count"},
      {FaultKind::kKillAcked, "kill-acked", "SIGKILL to a worker as soon as etcd knows that it has saved its part",
       true},
      {FaultKind::kCrashWorker, "crash-worker", "SIGSEGV to a worker: it crashes, and says where", true},
      {FaultKind::kOutOfMemory,
       "out-of-memory",
       "a worker gets no more memory, and one joins: the kernel kills the former",
       true,
       {},
       true,
       Needs::kNoMemory},
      {FaultKind::kTermWorker, "term-worker", "SIGTERM to a worker: it leaves in order", true},
      {FaultKind::kTermKill, "term-kill", "SIGTERM to a worker, and SIGKILL soon after", true, {}, true},
      {FaultKind::kStopWorker, "stop-worker", "SIGSTOP to a worker, SIGCONT later", true, {}, true},
      {FaultKind::kStopLeader, "stop-leader", "SIGSTOP to the worker that leads, SIGCONT later", false, {}, true},
      {FaultKind::kJoin, "join", "workers join", false, "count"},
      {FaultKind::kScale, "scale", "everstep scale asks for more or fewer local workers", false, "by"},
      {FaultKind::kRevokeLease, "revoke-lease", "etcd takes a worker's lease away", true},
      {FaultKind::kEtcdKill,
       "etcd-kill",
       "SIGKILL to the etcd server that leads, started again later",
       false,
       {},
       true},
      {FaultKind::kEtcdStop, "etcd-stop", "SIGSTOP to the etcd server that leads, SIGCONT later", false, {}, true},
      {FaultKind::kEtcdAway, "etcd-away", "SIGSTOP to all etcd servers, SIGCONT later", false, {}, true},
      {FaultKind::kEtcdRoll,
       "etcd-roll",
       "all etcd servers restart, one after the other",
       false,
       {},
       false,
       Needs::kThreeServers},
      {FaultKind::kEtcdSplit,
       "etcd-split",
       "one of three etcd servers, on another host, is cut from all others",
       false,
       {},
       true,
       Needs::kFarHost},
      {FaultKind::kFillDisk,
       "fill-disk",
       "the disk of the checkpoints is full for a while",
       false,
       {},
       true,
       Needs::kSmallDisk},
      {FaultKind::kSlowDisk, "slow-disk", "each fsync of all workers takes some seconds longer for a while", false,
       "by", true, Needs::kSlowDisk},
      {FaultKind::kHalfOpen,
       "half-open",
       "a worker joins, and later its peers' connections to it carry nothing for a while",
       false,
       {},
       true},
      {FaultKind::kCorrupt,
       "corrupt",
       "a worker joins, and each connection to it gets a wrong byte for a while",
       false,
       {},
       true},
      {FaultKind::kDelay, "delay", "a worker joins, and connections to it are slow for a while", false, {}, true},
      {FaultKind::kCutOff,
       "cut-off",
       "a worker joins from another host, whose network is cut for a while",
       false,
       {},
       true,
       Needs::kFarHost},
      {FaultKind::kCutEtcd,
       "cut-etcd",
       "a worker joins from another host, which then cannot reach etcd for a while",
       false,
       {},
       true,
       Needs::kFarHost},
      {FaultKind::kCutPeers,
       "cut-peers",
       "a worker joins from another host, which then cannot reach other workers for a while",
       false,
       {},
       true,
       Needs::kFarHost},
      {FaultKind::kThinLine,
       "thin-line",
       "a worker joins from another host, over a line that then carries little and loses the rest for a while",
       false,
       {},
       true,
       Needs::kFarHost},
      {FaultKind::kFlipByte,
       "flip-byte",
       "a byte of the newest checkpoint changes after the end: breaks RESTORE",
       false,
       {},
       false,
       Needs::kNobody},
      {FaultKind::kHang,
       "hang",
       "SIGSTOP to the newest worker, for ever: breaks NOHANG",
       false,
       {},
       false,
       Needs::kNobody},
      {FaultKind::kStray, "stray", "a process that nobody ends: breaks NOHANG", false, {}, false, Needs::kNobody},
  };
  return forms;
}

const FaultForm& form_of(FaultKind kind) { return all_forms()[static_cast<std::size_t>(kind)]; }

std::string to_text(const Fault& fault) {
  const FaultForm& form = form_of(fault.kind);
  std::string text(form.name);
  if (form.picks) text += " pick=" + std::to_string(fault.pick);
  if (!form.number.empty()) text += " " + std::string(form.number) + "=" + std::to_string(fault.number);
  if (form.lasts) text += " for=" + seconds_text(fault.lasts);
  return text;
}

Result<Fault> parse_fault(std::string_view text) {
  const std::string_view name = take_word(text);
  const auto& forms = all_forms();
  const auto form = std::find_if(forms.begin(), forms.end(), [&](const FaultForm& one) { return one.name == name; });
  if (form == forms.end()) return wrong_fault(name, "there is no such fault");
  Fault fault{form->kind};
  int missing = static_cast<int>(form->picks) + static_cast<int>(!form->number.empty()) + static_cast<int>(form->lasts);
  for (std::string_view word = take_word(text); !word.empty(); word = take_word(text)) {
    EVERSTEP_TRY(read_value(word, *form, fault));
    --missing;
  }
  if (missing != 0) return wrong_fault(name, "has values that are missing or doubled");
  return fault;
}

std::string seconds_text(milliseconds time) { return number_text(static_cast<double>(time.count()) / 1000, 3); }

Result<milliseconds> parse_seconds(std::string_view text) {
  const auto seconds = parse_number<double>(text);
  if (!seconds || !(*seconds >= 0 && *seconds <= kLongest)) return wrong_fault(text, "expected seconds from 0 to 3600");
  return milliseconds(std::llround(*seconds * 1000));
}

}  // namespace everstep::launcher::chaos
