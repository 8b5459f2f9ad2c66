#include "storage/manifest.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/text.h"

namespace everstep::storage {
namespace {

constexpr std::array<std::string_view, 5> kKindNames = {"weights", "previous", "optimizer", "gradients", "provisional"};

constexpr std::size_t kHalf = 8;  // digits of 32 bits

std::string short_hex(std::uint32_t number) { return hex_text(number).substr(kHalf); }

std::optional<std::uint32_t> parse_short_hex(std::string_view text) {
  if (text.size() != kHalf) return std::nullopt;
  const auto number = parse_hex(std::string(kHalf, '0').append(text));
  if (!number) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

std::string four_digits(int block) {
  const std::string digits = std::to_string(block);
  return std::string(4 - std::min<std::size_t>(digits.size(), 4), '0') + digits;
}

}  // namespace

std::string_view to_string(StateKind kind) { return kKindNames.at(static_cast<std::size_t>(kind)); }

std::optional<StateKind> parse_state_kind(std::string_view text) {
  const auto* const found = std::ranges::find(kKindNames, text);
  if (found == kKindNames.end()) return std::nullopt;
  return static_cast<StateKind>(found - kKindNames.begin());
}

std::string to_string(const CheckpointName& name) {
  return "g" + std::to_string(name.generation.value) + "-p" + std::to_string(name.position.value) + "-" +
         short_hex(name.nonce);
}

std::optional<CheckpointName> parse_checkpoint_name(std::string_view text) {
  const std::size_t position = text.find("-p");
  const std::size_t nonce = text.rfind('-');
  if (!text.starts_with('g') || position == std::string_view::npos || nonce <= position) return std::nullopt;
  const auto generation_value = parse_number<std::int64_t>(text.substr(1, position - 1));
  const auto position_value = parse_number<std::int64_t>(text.substr(position + 2, nonce - position - 2));
  const auto nonce_value = parse_short_hex(text.substr(nonce + 1));
  if (!generation_value || !position_value || !nonce_value) return std::nullopt;
  if (*generation_value < 0 || *position_value < 0) return std::nullopt;
  const CheckpointName name{.generation = {*generation_value}, .position = {*position_value}, .nonce = *nonce_value};
  // One name has one text: "g03" is none.
  if (to_string(name) != text) return std::nullopt;
  return name;
}

std::string to_string(const WriterTag& writer) { return short_hex(writer.author) + "-" + short_hex(writer.random); }

std::optional<WriterTag> parse_writer_tag(std::string_view text) {
  if (text.size() != 2 * kHalf + 1 || text[kHalf] != '-') return std::nullopt;
  const auto author = parse_short_hex(text.substr(0, kHalf));
  const auto random = parse_short_hex(text.substr(kHalf + 1));
  if (!author || !random) return std::nullopt;
  return WriterTag{.author = *author, .random = *random};
}

std::string path_of(std::uint64_t lineage, const FileRecord& file) {
  return directory_of(lineage, file.written_by) + "/" + four_digits(file.block) + "-" +
         std::string(to_string(file.kind)) + "-" + to_string(file.writer) + ".h5";
}

TensorFileSpec spec_of(const std::string& job, const FileRecord& file) {
  return {.attributes = {.job = job,
                         .kind = std::string(to_string(file.kind)),
                         .block = file.block,
                         .position = file.written_by.position.value,
                         .version = file.version.value,
                         .format = kFormatVersion},
          .tensors = file.tensors};
}

bool Manifest::has(StateKind kind) const {
  return std::ranges::any_of(files, [&](const FileRecord& file) { return file.kind == kind; });
}

const FileRecord* Manifest::find(int block, StateKind kind) const {
  const auto key = [](const FileRecord& file) { return std::tuple(file.block, file.kind); };
  const auto found = std::ranges::lower_bound(files, std::tuple(block, kind), {}, key);
  return found != files.end() && key(*found) == std::tuple(block, kind) ? &*found : nullptr;
}

std::uint64_t Manifest::bytes() const {
  std::uint64_t sum = 0;
  for (const FileRecord& file : files) sum += file.size;
  return sum;
}

std::string lineage_directory(std::uint64_t lineage) { return hex_text(lineage).substr(0, kHalf); }

std::string directory_of(std::uint64_t lineage, const CheckpointName& name) {
  return lineage_directory(lineage) + "/" + to_string(name);
}

std::string manifest_path(std::uint64_t lineage, const CheckpointName& name, const WriterTag& writer) {
  return directory_of(lineage, name) + "/manifest-" + to_string(writer) + ".json";
}

std::string commit_record_path(std::uint64_t lineage, const CheckpointName& name) {
  return directory_of(lineage, name) + "/commit.json";
}

std::string ledger_path(std::uint64_t lineage, Position end, const WriterTag& writer) {
  return lineage_directory(lineage) + "/ledger/p" + std::to_string(end.value) + "-" + to_string(writer) + ".json";
}

}  // namespace everstep::storage
