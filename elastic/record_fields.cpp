#include "elastic/record_fields.h"

#include <cmath>

#include "base/text.h"

namespace everstep::elastic {
namespace {

std::string escaped(std::string_view value) {
  std::string text;
  for (const char letter : value) {
    if (letter == '\n') {
      text += "\\n";
    } else if (letter == '\\') {
      text += "\\\\";
    } else {
      text += letter;
    }
  }
  return text;
}

std::optional<std::string> unescaped(std::string_view text) {
  std::string value;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\') {
      value += text[at];
      continue;
    }
    if (++at == text.size() || (text[at] != 'n' && text[at] != '\\')) return std::nullopt;
    value += text[at] == 'n' ? '\n' : '\\';
  }
  return value;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t blank = text.find(' ');
    words.push_back(text.substr(0, blank));
    text = blank == std::string_view::npos ? std::string_view() : text.substr(blank + 1);
  }
  return words;
}

std::optional<Attempt> parse_attempt(std::string_view text) {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto generation = parse_number<std::int64_t>(text.substr(0, dash));
  const auto nonce = parse_hex(text.substr(dash + 1));
  if (!generation || *generation < 0 || !nonce || *nonce > UINT32_MAX) return std::nullopt;
  return Attempt{{*generation}, static_cast<std::uint32_t>(*nonce)};
}

}  // namespace

void FieldWriter::line(std::string_view name, std::string_view value) {
  text_ += std::string(name) + " " + escaped(value) + "\n";
}

void FieldWriter::field(std::string_view name, std::int64_t value) { line(name, std::to_string(value)); }
void FieldWriter::field(std::string_view name, double value) { line(name, shortest_text(value)); }
void FieldWriter::hex(std::string_view name, std::uint64_t value) { line(name, hex_text(value)); }

void FieldWriter::list(std::string_view name, const std::vector<WorkerId>& values) {
  for (const WorkerId& value : values) field(name, value);
}

void FieldWriter::lists(std::string_view name, const std::vector<std::vector<WorkerId>>& values) {
  for (const auto& ids : values) {
    std::string text;
    for (const WorkerId& id : ids) text += (text.empty() ? "" : " ") + to_string(id);
    line(name, text);
  }
}

void FieldWriter::numbers(std::string_view name, const std::vector<int>& values) {
  std::string text;
  for (const int value : values) text += (text.empty() ? "" : " ") + std::to_string(value);
  line(name, text);
}

void FieldWriter::pairs(std::string_view name, const std::vector<std::pair<std::string, std::string>>& values) {
  for (const auto& [key, value] : values) {
    std::string pair = key;
    line(name, pair.append(" ").append(value));
  }
}

FieldReader::FieldReader(std::string_view text) : rest_(text) {
  if (text.size() > kMostRecordBytes) fail("size");
}

void FieldReader::fail(std::string_view name) {
  if (ok()) failed_ = std::string(name);
}

bool FieldReader::next_is(std::string_view name) const {
  return ok() && rest_.size() > name.size() && rest_.starts_with(name) && rest_[name.size()] == ' ';
}

std::string_view FieldReader::take(std::string_view name) {
  const std::size_t end = rest_.find('\n');
  if (!next_is(name) || end == std::string_view::npos) {
    fail(name);
    return {};
  }
  const std::string_view value = rest_.substr(0, end).substr(name.size() + 1);
  rest_.remove_prefix(end + 1);
  return value;
}

void FieldReader::field(std::string_view name, std::string& value) {
  auto text = unescaped(take(name));
  if (!text) return fail(name);
  value = *std::move(text);
}

void FieldReader::field(std::string_view name, std::int64_t& value) {
  const auto number = parse_number<std::int64_t>(take(name));
  if (!number || *number < 0) return fail(name);
  value = *number;
}

void FieldReader::field(std::string_view name, int& value) {
  const auto number = parse_number<int>(take(name));
  if (!number || *number < 0) return fail(name);
  value = *number;
}

void FieldReader::field(std::string_view name, bool& value) {
  const std::string_view text = take(name);
  if (text != "yes" && text != "no") return fail(name);
  value = text == "yes";
}

void FieldReader::field(std::string_view name, double& value) {
  const auto number = parse_number<double>(take(name));
  if (!number || !std::isfinite(*number)) return fail(name);
  value = *number;
}

void FieldReader::measured(std::string_view name, double& value) {
  const auto number = parse_number<double>(take(name));
  if (!number) return fail(name);
  value = *number;
}

void FieldReader::hex(std::string_view name, std::uint64_t& value) {
  const auto number = parse_hex(take(name));
  if (!number) return fail(name);
  value = *number;
}

void FieldReader::field(std::string_view name, WorkerId& value) {
  const auto id = parse_worker_id(take(name));
  if (!id) return fail(name);
  value = *id;
}

void FieldReader::field(std::string_view name, Attempt& value) {
  const auto attempt = parse_attempt(take(name));
  if (!attempt) return fail(name);
  value = *attempt;
}

void FieldReader::list(std::string_view name, std::vector<WorkerId>& values) {
  while (next_is(name)) {
    if (values.size() == kMostListItems) return fail(name);
    field(name, values.emplace_back());
  }
}

void FieldReader::lists(std::string_view name, std::vector<std::vector<WorkerId>>& values) {
  while (next_is(name)) {
    if (values.size() == kMostListItems) return fail(name);
    std::vector<WorkerId>& ids = values.emplace_back();
    for (const std::string_view word : words_of(take(name))) {
      const auto id = parse_worker_id(word);
      if (!id) return fail(name);
      ids.push_back(*id);
    }
  }
}

void FieldReader::numbers(std::string_view name, std::vector<int>& values) {
  for (const std::string_view word : words_of(take(name))) {
    const auto number = parse_number<int>(word);
    if (!number || values.size() == kMostListItems) return fail(name);
    values.push_back(*number);
  }
}

void FieldReader::pairs(std::string_view name, std::vector<std::pair<std::string, std::string>>& values) {
  while (next_is(name)) {
    std::string text;
    field(name, text);
    const std::size_t blank = text.find(' ');
    if (blank == std::string::npos || values.size() == kMostListItems) return fail(name);
    values.emplace_back(text.substr(0, blank), text.substr(blank + 1));
  }
}

}  // namespace everstep::elastic
