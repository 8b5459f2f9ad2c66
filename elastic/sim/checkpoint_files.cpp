#include "elastic/sim/checkpoint_files.h"

#include <sstream>
#include <utility>

#include "base/text.h"

namespace everstep::elastic::sim {
namespace {

// Words with blanks between them; a document ends with "end", so that a torn one is found.
class Reader {
 public:
  explicit Reader(const std::string& text) : in_(text) {}

  std::string word() {
    std::string next;
    if (!(in_ >> next)) ok_ = false;
    return next;
  }
  std::int64_t number() { return parsed<std::int64_t>(word()); }
  std::uint64_t bits() { return parsed<std::uint64_t>(word()); }
  std::int64_t count() {
    const std::int64_t many = number();
    if (many < 0 || many > 100'000) ok_ = false;
    return ok_ ? many : 0;
  }
  bool at_end() { return word() == "end" && ok_; }

 private:
  template <typename Number>
  Number parsed(const std::string& text) {
    const auto value = parse_number<Number>(text);
    if (!value) ok_ = false;
    return value.value_or(Number{});
  }

  std::istringstream in_;
  bool ok_ = true;
};

void write(std::ostream& out, const CheckpointName& name) {
  out << name.generation << ' ' << name.position << ' ' << name.nonce << ' ';
}

CheckpointName read_name(Reader& in) {
  CheckpointName name;
  name.generation = {in.number()};
  name.position = {in.number()};
  name.nonce = in.bits();
  return name;
}

void write(std::ostream& out, const std::vector<FileRef>& files) {
  out << files.size() << ' ';
  for (const FileRef& file : files) out << file.block << ' ' << file.path << ' ' << file.digest << ' ';
}

std::vector<FileRef> read_files(Reader& in) {
  std::vector<FileRef> files(in.count());
  for (FileRef& file : files) {
    file.block = static_cast<int>(in.number());
    file.path = in.word();
    file.digest = in.word();
  }
  return files;
}

void write(std::ostream& out, const std::set<std::int64_t>& windows) {
  out << windows.size() << ' ';
  for (const std::int64_t window : windows) out << window << ' ';
}

std::set<std::int64_t> read_windows(Reader& in) {
  std::set<std::int64_t> windows;
  for (std::int64_t left = in.count(); left > 0; --left) windows.insert(in.number());
  return windows;
}

void write(std::ostream& out, const std::vector<Consumed>& minibatches) {
  out << minibatches.size() << ' ';
  for (const Consumed& one : minibatches) out << one.position << ' ' << one.sample << ' ';
}

std::vector<Consumed> read_consumed(Reader& in) {
  std::vector<Consumed> minibatches(in.count());
  for (Consumed& one : minibatches) {
    one.position = in.number();
    one.sample = in.number();
  }
  return minibatches;
}

Error damaged(const std::string& path, const std::string& why) {
  return {ErrorCode::kDataLoss, "'" + path + "' " + why, ""};
}

Result<std::string> read_verified(const Disk& disk, const std::string& path, const std::string& digest, bool durable) {
  auto text = durable ? disk.read_durable(path) : disk.read(path);
  if (!text) return damaged(path, "cannot be read: " + text.error().message);
  if (digest_of(*text) != digest) return damaged(path, "is not what was committed");
  return text;
}

}  // namespace

std::string to_string(const CheckpointName& name) {
  return std::to_string(name.generation.value) + "-" + std::to_string(name.position.value) + "-" + hex_text(name.nonce);
}

std::optional<CheckpointName> parse_checkpoint_name(std::string_view text) {
  const std::size_t first = text.find('-');
  const std::size_t second = text.find('-', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return std::nullopt;
  const auto generation = parse_number<std::int64_t>(text.substr(0, first));
  const auto position = parse_number<std::int64_t>(text.substr(first + 1, second - first - 1));
  const auto nonce = parse_hex(text.substr(second + 1));
  if (!generation || !position || !nonce) return std::nullopt;
  return CheckpointName{{*generation}, {*position}, *nonce};
}

std::string to_text(const BlockFile& file) {
  std::ostringstream out;
  out << file.block << ' ' << file.state.weights << ' ' << file.state.moments << ' ' << file.version << ' '
      << file.writer << " end";
  return out.str();
}

std::optional<BlockFile> parse_block_file(const std::string& text) {
  Reader in(text);
  BlockFile file;
  file.block = static_cast<int>(in.number());
  file.state = {in.bits(), in.bits()};
  file.version = in.number();
  file.writer = in.word();
  return in.at_end() ? std::optional(file) : std::nullopt;
}

std::string to_text(const Shard& shard) {
  std::ostringstream out;
  write(out, shard.name);
  out << shard.version << ' ';
  write(out, shard.files);
  write(out, shard.skipped);
  write(out, shard.history);
  out << "end";
  return out.str();
}

std::optional<Shard> parse_shard(const std::string& text) {
  Reader in(text);
  Shard shard;
  shard.name = read_name(in);
  shard.version = in.number();
  shard.files = read_files(in);
  shard.skipped = read_windows(in);
  shard.history = read_consumed(in);
  return in.at_end() ? std::optional(std::move(shard)) : std::nullopt;
}

std::string to_text(const Manifest& manifest) {
  std::ostringstream out;
  write(out, manifest.name);
  out << manifest.version << ' ';
  write(out, manifest.files);
  write(out, manifest.skipped);
  out << manifest.parent << ' ';
  write(out, manifest.consumed);
  out << "end";
  return out.str();
}

std::optional<Manifest> parse_manifest(const std::string& text) {
  Reader in(text);
  Manifest manifest;
  manifest.name = read_name(in);
  manifest.version = in.number();
  manifest.files = read_files(in);
  manifest.skipped = read_windows(in);
  manifest.parent = in.word();
  manifest.consumed = read_consumed(in);
  return in.at_end() ? std::optional(std::move(manifest)) : std::nullopt;
}

std::string to_text(const HeadDocument& head) {
  std::ostringstream out;
  out << head.sequence << ' ';
  write(out, head.name);
  out << head.manifest << ' ' << head.path << ' ' << head.previous << ' ' << head.parent << ' ' << head.committer
      << " end";
  return out.str();
}

std::optional<HeadDocument> parse_head_document(const std::string& text) {
  Reader in(text);
  HeadDocument head;
  head.sequence = in.number();
  head.name = read_name(in);
  head.manifest = in.word();
  head.path = in.word();
  head.previous = in.word();
  head.parent = in.word();
  head.committer = in.word();
  return in.at_end() ? std::optional(std::move(head)) : std::nullopt;
}

HeadRecord record_of(const HeadDocument& head) {
  return {head.sequence, head.name.generation, head.name.position, head.manifest, to_text(head)};
}

Result<LoadedCheckpoint> load_checkpoint(const Disk& disk, const HeadDocument& head, bool durable) {
  const auto text = read_verified(disk, head.path, head.manifest, durable);
  if (!text) return text.error();
  auto manifest = parse_manifest(*text);
  if (!manifest) return damaged(head.path, "is no manifest");
  LoadedCheckpoint loaded{*std::move(manifest), {}};
  loaded.state.position = loaded.manifest.name.position;
  loaded.state.version = loaded.manifest.version;
  loaded.state.skipped = loaded.manifest.skipped;
  for (const FileRef& ref : loaded.manifest.files) {
    const auto bytes = read_verified(disk, ref.path, ref.digest, durable);
    if (!bytes) return bytes.error();
    const auto file = parse_block_file(*bytes);
    if (!file || file->block != ref.block) return damaged(ref.path, "is of another block");
    loaded.state.blocks[file->block] = file->state;
  }
  if (loaded.state.blocks.size() != kBlocks) return damaged(head.path, "does not name all blocks");
  return loaded;
}

}  // namespace everstep::elastic::sim
