#include "launcher/doctor/judgement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/text.h"
#include "launcher/cli/quantities.h"
#include "storage/json/json_reader.h"

namespace everstep::launcher::doctor {
namespace {

using storage::Json;
using storage::JsonReader;

void add_reason(std::string& reasons, const std::string& reason) {
  reasons.append(reasons.empty() ? "" : "; ").append(reason);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : ", ").append(word);
  return text;
}

std::string mib(std::int64_t bytes) { return fixed_text(static_cast<double>(bytes) / (1 << 20), 0) + " MiB"; }

// "3.2e-07"
std::string small_text(double value) {
  if (value == 0 || value >= 1e-3) return number_text(value, 4);
  const int exponent = static_cast<int>(std::floor(std::log10(value)));
  return fixed_text(value / std::pow(10.0, exponent), 1) + "e" + std::to_string(exponent);
}

struct NamedBits {
  std::string name;
  std::string bits;
  std::string known;
};

Result<std::vector<NamedBits>> read_bits(const JsonReader& answer, std::string_view where) {
  const auto elements = answer.elements_at(where);
  if (!elements) return elements.error();
  std::vector<NamedBits> all;
  for (const JsonReader& element : *elements) {
    const auto name = element.text_at("name");
    const auto bits = element.text_at("bits");
    const auto known = element.text_at("known");
    if (!name || !bits || !known) return element.error("an operator has a name and bits");
    all.push_back({*name, *bits, *known});
  }
  return all;
}

// Empty: the device has the bits of the CPU.
Result<std::string> why_operators_failed(const JsonReader& device, const std::map<std::string, std::string>& expected) {
  const auto name = device.text_at("device");
  if (!name) return name.error();
  if (device.has("error")) {
    const auto error = device.text_at("error");
    return error ? Result<std::string>(*name + ": " + *error) : error;
  }
  const auto bits = read_bits(device, "operators");
  if (!bits) return bits.error();
  std::vector<std::string> wrong;
  for (const NamedBits& one : *bits) {
    const auto known = expected.find(one.name);
    if (known == expected.end() || one.bits != known->second) wrong.push_back(one.name);
  }
  std::string reason;
  if (bits->size() != expected.size()) add_reason(reason, *name + " has not run all of them");
  if (!wrong.empty()) add_reason(reason, "on " + *name + " these have other bits than on the CPU: " + joined(wrong));
  return reason;
}

// On one device.
struct ReadBlock {
  std::string name;
  std::string device;
  std::string precision;
  std::string error{};  // it could not be computed; then nothing below is known
  std::string against{};
  std::optional<double> distance{};  // nothing: it is no number
  bool repeats = false;
  bool is_finite = false;
  std::string differs_from{};
  Json facts{};
};

Result<ReadBlock> read_block(const JsonReader& block) {
  const auto family = block.text_at("family");
  const auto precision = block.text_at("precision");
  const auto device = block.text_at("device");
  const Error lacks = block.error("a block lacks a figure");
  if (!family || !precision || !device) return lacks;
  ReadBlock read{"block " + *family + " " + *precision, *device, *precision};
  read.facts = block.json();
  if (block.has("error")) {
    const auto error = block.text_at("error");
    if (!error) return lacks;
    read.error = *error;
    return read;
  }
  const auto against = block.text_at("against");
  const auto repeats = block.boolean_at("repeats");
  const auto is_finite = block.boolean_at("finite");
  const auto differs_from = block.text_at("differs_from");
  if (!against || !repeats || !is_finite || !differs_from) return lacks;
  read.against = *against;
  if (const auto distance = block.number_at("distance")) read.distance = *distance;
  read.repeats = *repeats;
  read.is_finite = *is_finite;
  read.differs_from = *differs_from;
  return read;
}

double limit_of(const ReadBlock& block) {
  if (block.against == "differences") return kFp32Differences;
  if (block.against == "fp32") return kBf16FromFp32;
  return block.precision == "fp32" ? kFp32OnDevice : kBf16OnDevice;
}

std::string name_of_reference(const ReadBlock& block) {
  if (block.against == "differences") return "differences of the loss";
  return block.against == "fp32" ? "fp32" : "the CPU";
}

std::string distance_text(const ReadBlock& block) {
  return (block.distance ? small_text(*block.distance) : "no number") + " off " + name_of_reference(block);
}

// Empty: it is as it should be.
std::string why_block_failed(const ReadBlock& block) {
  if (!block.error.empty()) return block.error;
  const double limit = limit_of(block);
  std::string reason;
  if (!block.is_finite) add_reason(reason, "the loss or the gradient is not finite");
  if (!block.distance || !(*block.distance <= limit)) {
    add_reason(reason,
               "the gradient or the loss is " + distance_text(block) + ", which is more than " + small_text(limit));
  }
  if (!block.repeats) add_reason(reason, "a second time it has other bits: --reproducible will not repeat");
  if (!block.differs_from.empty()) {
    add_reason(reason, "it has other bits than " + block.differs_from + ", which is of the same model");
  }
  return reason;
}

// With the figures of the device that is the farthest off.
Check judge_block(const std::string& name, const std::vector<ReadBlock>& of_devices) {
  std::string reason;
  Json devices = Json::array();
  bool all_repeat = true;
  for (const ReadBlock& one : of_devices) {
    const std::string why = why_block_failed(one);
    if (!why.empty()) add_reason(reason, "on " + one.device + " " + why);
    all_repeat = all_repeat && one.repeats;
    devices.append(one.facts);
  }
  const auto is_less_off = [](const ReadBlock& a, const ReadBlock& b) {
    const auto key = [](const ReadBlock& one) {
      return std::pair(one.error.empty(), one.distance.value_or(std::numeric_limits<double>::infinity()));
    };
    return key(a) < key(b);
  };
  const ReadBlock& worst = *std::max_element(of_devices.begin(), of_devices.end(), is_less_off);
  std::string figure = "none";
  std::string limit;
  if (worst.error.empty()) {
    figure = distance_text(worst) + (all_repeat ? ", bits repeat" : ", bits differ");
    limit = "at most " + small_text(limit_of(worst)) + ", bits repeat";
  }
  if (of_devices.size() > 1) figure += ", the worst of " + std::to_string(of_devices.size());
  Check check = checked(name, figure, limit, reason);
  check.facts = Json::object().set("devices", std::move(devices));
  return check;
}

struct LinksOfKind {
  double slowest = 0;  // GB/s
  double latency_us = 0;
  std::int64_t pairs = 0;
  std::string reason{};       // why it has failed
  std::string not_checked{};  // why it was not
  Json pairs_json = Json::array();
};

Result<std::string> read_kind(const JsonReader& link, std::string_view field, std::string& text) {
  const auto value = link.text_at(field);
  if (!value) return value.error();
  text = *value;
  return link.text_at("kind");
}

Status read_links(const JsonReader& answer, std::vector<std::pair<std::string, LinksOfKind>>& kinds) {
  const auto of_kind = [&](const std::string& name) -> LinksOfKind& {
    const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const auto& one) { return one.first == name; });
    return found != kinds.end() ? found->second : kinds.emplace_back(name, LinksOfKind{}).second;
  };
  const auto links = answer.elements_at("links");
  if (!links) return links.error();
  for (const JsonReader& link : *links) {
    const auto kind = link.text_at("kind");
    const auto from = link.text_at("from");
    const auto to = link.text_at("to");
    const auto speed = link.number_at("gb_per_s");
    const auto latency = link.number_at("latency_us");
    const auto is_intact = link.boolean_at("intact");
    if (!kind || !from || !to || !speed || !latency || !is_intact) return link.error("a link lacks a figure");
    LinksOfKind& all = of_kind(*kind);
    const std::string between = "from " + *from + " to " + *to;
    if (!*is_intact) add_reason(all.reason, between + " other bytes come than were sent");
    if (*speed < kSlowestLink) add_reason(all.reason, between + " " + fixed_text(*speed, 3) + " GB/s");
    if (all.pairs == 0 || *speed < all.slowest) all.slowest = *speed;
    all.latency_us = std::max(all.latency_us, *latency);
    ++all.pairs;
    all.pairs_json.append(link.json());
  }
  for (const auto& [list, member] :
       {std::pair("failed", &LinksOfKind::reason), std::pair("not_checked", &LinksOfKind::not_checked)}) {
    const auto others = answer.elements_at(list);
    if (!others) return others.error();
    for (const JsonReader& link : *others) {
      std::string why;
      const auto kind = read_kind(link, "reason", why);
      if (!kind) return kind.error();
      const auto from = link.text_at("from");
      const auto to = link.text_at("to");
      add_reason(of_kind(*kind).*member, from && to ? "from " + *from + " to " + *to + ": " + why : why);
    }
  }
  return {};
}

}  // namespace

Result<Check> judge_operators(const Json& answer) {
  const JsonReader reader(answer);
  const auto on_cpu = read_bits(reader, "cpu");
  if (!on_cpu) return on_cpu.error();
  std::vector<std::string> wrong_on_cpu;
  std::map<std::string, std::string> expected;
  for (const NamedBits& one : *on_cpu) {
    if (one.bits != one.known) wrong_on_cpu.push_back(one.name);
    expected[one.name] = one.bits;
  }
  std::string reason;
  if (on_cpu->empty()) add_reason(reason, "there is none");
  if (!wrong_on_cpu.empty()) {
    add_reason(reason, "on the CPU these have other bits than they should: " + joined(wrong_on_cpu));
  }
  std::string figure = counted(std::ssize(*on_cpu), "operator", "operators");
  const bool has_devices = reader.has("devices");
  if (has_devices) {
    const auto devices = reader.elements_at("devices");
    if (!devices) return devices.error();
    for (const JsonReader& device : *devices) {
      const auto why = why_operators_failed(device, expected);
      if (!why) return why.error();
      if (!why->empty()) add_reason(reason, *why);
    }
    if (devices->empty()) add_reason(reason, "no device has run them");
    if (devices->size() > 1) figure += " on each of " + std::to_string(devices->size());
  }
  Check check = checked("operators", figure + (reason.empty() ? ", equal bits" : ""),
                        has_devices ? "the CPU's bits" : "known bits", reason);
  check.facts = answer;
  return check;
}

Result<std::vector<Check>> judge_blocks(const Json& answer) {
  const auto blocks = JsonReader(answer).elements_at("blocks");
  if (!blocks) return blocks.error();
  std::vector<std::pair<std::string, std::vector<ReadBlock>>> rows;
  for (const JsonReader& block : *blocks) {
    auto read = read_block(block);
    if (!read) return read.error();
    const std::string name = read->name;
    if (rows.empty() || rows.back().first != name) rows.emplace_back(name, std::vector<ReadBlock>());
    rows.back().second.push_back(*std::move(read));
  }
  std::vector<Check> checks;
  for (const auto& [name, of_devices] : rows) checks.push_back(judge_block(name, of_devices));
  return checks;
}

Result<std::vector<Check>> judge_links(const Json& answer) {
  std::vector<std::pair<std::string, LinksOfKind>> kinds;
  EVERSTEP_TRY(read_links(JsonReader(answer), kinds));
  std::vector<Check> checks;
  for (auto& [kind, links] : kinds) {
    const std::string name = "link " + kind;
    if (links.pairs == 0 && links.reason.empty()) {
      checks.push_back(not_checked(name, links.not_checked));
      continue;
    }
    std::string figure = "none";
    if (links.pairs > 0) figure = fixed_text(links.slowest, 2) + " GB/s, " + fixed_text(links.latency_us, 0) + " us";
    if (links.pairs > 1) figure += ", the slowest of " + std::to_string(links.pairs);
    checks.push_back(checked(name, figure, number_text(kSlowestLink, 3) + " GB/s, the bytes sent", links.reason));
    checks.back().facts = Json::object().set("pairs", std::move(links.pairs_json));
  }
  return checks;
}

Check judge_bits(const ComparedRuns& runs) {
  constexpr std::size_t kNamed = 3;
  std::string reason;
  if (runs.tensors == 0) reason = "there is nothing to compare";
  if (!runs.different.empty()) {
    const auto end = runs.different.begin() + static_cast<std::ptrdiff_t>(std::min(kNamed, runs.different.size()));
    reason =
        std::to_string(runs.different.size()) + " differ in some bit, such as " + joined({runs.different.begin(), end});
  }
  const auto equal = static_cast<std::int64_t>(runs.tensors - runs.different.size());
  Check check = checked("reproducible",
                        grouped(equal) + " of " + grouped(static_cast<std::int64_t>(runs.tensors)) + " tensors equal",
                        "all, in every bit", reason);
  check.facts.set("tensors", runs.tensors).set("different", runs.different.size());
  return check;
}

Check judge_memory(std::int64_t taken, std::int64_t predicted) {
  const auto allowed =
      std::max(kMemoryNoise, static_cast<std::int64_t>(kMemoryTolerance * static_cast<double>(predicted)));
  std::string reason;
  if (taken <= 0) {
    reason = "nobody said how much was taken";
  } else if (std::abs(taken - predicted) > allowed) {
    reason = mib(taken) + " were taken on the fullest worker, and the planner reckons with " + mib(predicted);
  }
  Check check = checked("memory", mib(taken) + ", predicted " + mib(predicted), "within " + mib(allowed), reason);
  check.facts.set("taken_bytes", taken).set("predicted_bytes", predicted);
  return check;
}

Check judge_speed(double tokens_per_s, double predicted, const std::vector<DeviceTime>& devices) {
  const double share = predicted > 0 ? tokens_per_s / predicted : 0;
  std::string reason;
  if (!(share >= kLeastSpeed)) {
    reason = "jobs train at " + fixed_text(share, 2) +
             " of the speed that follows from the blocks' times: does something else run here?";
  }
  const auto fastest = std::min_element(devices.begin(), devices.end(),
                                        [](const DeviceTime& a, const DeviceTime& b) { return a.ms < b.ms; });
  for (const DeviceTime& one : devices) {
    if (!(one.ms > fastest->ms / kLeastSpeed)) continue;
    add_reason(reason, one.device + " takes " + fixed_text(one.ms / fastest->ms, 1) +
                           " times as long for the blocks as " + fastest->device);
  }
  Check check = checked("throughput", speed_text(tokens_per_s) + ", predicted " + speed_text(predicted),
                        "at least " + number_text(kLeastSpeed, 2) + " of it", reason);
  check.facts.set("tokens_per_s", tokens_per_s).set("predicted_tokens_per_s", predicted).set("share", share);
  return check;
}

Check judge_recovery(const chaos::RunReport& report, const std::optional<std::string>& again) {
  std::string reason;
  Json promises = Json::object();
  for (const chaos::Finding& finding : report.findings) {
    promises.set(to_string(finding.promise), finding.text);
    // What is left over is no matter of recovery, and its limits are for a CPU's workers.
    if (finding.holds || finding.promise == chaos::Promise::kBound) continue;
    add_reason(reason, std::string(to_string(finding.promise)) + ": " + finding.text);
  }
  if (!again) add_reason(reason, "no generation without the killed worker began");
  if (report.findings.empty()) add_reason(reason, "nothing was found out");
  Check check = checked("recovery", again.value_or("does not train again"), "audit clean, replay equal", reason);
  check.facts.set("promises", std::move(promises));
  check.facts.set("generations", report.generations).set("commits", report.commits).set("updates", report.updates);
  return check;
}

}  // namespace everstep::launcher::doctor
