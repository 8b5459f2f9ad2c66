#include "tests/storage/fakes/sample_manifest.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace everstep::storage {
namespace {

// Two parameters per block, of shapes that tell blocks apart.
std::vector<TensorSpec> parameters(int block, ElementType type) {
  const std::string prefix = "h." + std::to_string(block) + ".";
  return {{.name = prefix + "weight", .type = type, .shape = {block + 2, 3}},
          {.name = prefix + "bias", .type = type, .shape = {block + 1}}};
}

std::vector<TensorSpec> tensors_of(int block, StateKind kind, const SampleOptions& options) {
  std::vector<TensorSpec> tensors;
  for (const TensorSpec& weight : parameters(block, options.weights)) {
    if (kind != StateKind::kOptimizer) {
      tensors.push_back(weight);
      continue;
    }
    for (const std::string group : {"first_moment/", "second_moment/", "master/"}) {
      if (group == "master/" && options.weights != ElementType::kBfloat16) continue;
      tensors.push_back({.name = group + weight.name, .type = ElementType::kFloat32, .shape = weight.shape});
    }
  }
  if (kind == StateKind::kGradients) {
    const bool fixed = options.accumulation == "fixed48";
    for (TensorSpec& tensor : tensors) tensor.type = fixed ? ElementType::kInt64 : ElementType::kFloat32;
  }
  return tensors;
}

FileRecord sample_file(const Manifest& manifest, int block, StateKind kind, const SampleOptions& options) {
  const auto number = static_cast<std::uint32_t>(block * 4 + static_cast<int>(kind));
  FileRecord file{.block = block,
                  .kind = kind,
                  .version = {manifest.version.value - (kind == StateKind::kPrevious ? 1 : 0)},
                  .written_by = manifest.name,
                  .writer = {.author = 0x1f2e3d4c, .random = number ^ manifest.name.nonce},
                  .size = 0,
                  .sha256 = {},
                  .tensors = tensors_of(block, kind, options)};
  for (const TensorSpec& tensor : file.tensors) file.size += tensor.bytes();
  file.sha256.bytes.fill(static_cast<std::byte>(number + 1));
  return file;
}

double sample_loss(int minibatch) { return 2.0 + 0.25 * minibatch; }

std::vector<StateKind> kinds_of(const SampleOptions& options) {
  std::vector<StateKind> kinds = {StateKind::kWeights};
  if (options.live) kinds.push_back(StateKind::kPrevious);
  kinds.push_back(StateKind::kOptimizer);
  if (options.minibatches_into_window > 0) kinds.push_back(StateKind::kGradients);
  return kinds;
}

// As ledgers name a plan of one pipeline.
std::string ledger_text(const StoredPlan& plan) {
  std::string text = plan.schedule + " D=" + std::to_string(plan.depth) + " P=1 W=" + std::to_string(plan.width) +
                     " M=" + std::to_string(plan.window) + " preload=" + std::to_string(plan.preload) + " cuts=";
  for (const int cut : plan.cuts) text += (cut == 0 ? "" : ",") + std::to_string(cut);
  return text;
}

}  // namespace

Manifest sample_manifest(const SampleOptions& options) {
  Manifest manifest;
  manifest.job = options.job;
  manifest.lineage = options.lineage;
  manifest.name = {.generation = options.generation,
                   .position = {options.version.value * options.window + options.minibatches_into_window},
                   .nonce = options.nonce};
  manifest.version = options.version;
  manifest.applied = options.version.value;
  manifest.plan = {.schedule = "1f1b",
                   .depth = options.blocks,
                   .chunks_per_device = 1,
                   .width = 1,
                   .window = options.window,
                   .preload = 2,
                   .cuts = std::vector<int>(static_cast<std::size_t>(options.blocks) + 1)};
  std::iota(manifest.plan.cuts.begin(), manifest.plan.cuts.end(), 0);
  manifest.blocks = options.blocks;
  manifest.accumulation = options.accumulation;
  for (int i = 0; i < options.minibatches_into_window; ++i) {
    manifest.window_losses.push_back({.minibatch = i, .loss = sample_loss(i)});
  }
  manifest.flushed = {0};
  manifest.loss = 2.5;
  manifest.configuration = {{"model", "tiny"}, {"seed", "1"}};
  manifest.provenance = {{"everstep", "0.1.0"}};
  for (int block = 0; block < options.blocks; ++block) {
    for (const StateKind kind : kinds_of(options)) {
      manifest.files.push_back(sample_file(manifest, block, kind, options));
    }
  }
  return manifest;
}

std::vector<std::byte> sample_bytes(const FileRecord& file, std::size_t tensor) {
  std::vector<std::byte> bytes(file.tensors.at(tensor).bytes());
  std::uint64_t state = static_cast<std::uint64_t>(file.version.value) * 1'000'003 +
                        static_cast<std::uint64_t>(file.block) * 4096 + static_cast<std::uint64_t>(file.kind) * 1024 +
                        tensor + 1;
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

LedgerSegment sample_ledger(const Manifest& manifest, Position begin) {
  LedgerSegment segment{
      .lineage = manifest.lineage, .before = {}, .begin = begin, .end = manifest.name.position, .entries = {}};
  const int window = manifest.plan.window;
  for (std::int64_t at = begin.value; at < segment.end.value;) {
    const auto first = static_cast<int>(at % window);
    const auto count = static_cast<int>(std::min<std::int64_t>(window - first, segment.end.value - at));
    LedgerEntry entry{.window = at / window,
                      .first = first,
                      .end = first + count,
                      .generation = manifest.name.generation,
                      .plan = ledger_text(manifest.plan),
                      .flushed = at == 0,
                      .skipped = false,
                      .losses = {}};
    for (int i = first; i < entry.end; ++i) entry.losses.push_back(sample_loss(i));
    segment.entries.push_back(std::move(entry));
    at += count;
  }
  return segment;
}

Head sample_head(const Manifest& manifest, const Digest& digest, std::int64_t sequence) {
  Head head{.sequence = sequence,
            .job = manifest.job,
            .lineage = manifest.lineage,
            .checkpoint = manifest.name,
            .writer = {.author = 0x1f2e3d4c, .random = 0x9a8b7c6d},
            .manifest = digest,
            .previous = {},
            .parent = manifest.parent};
  if (sequence > 1) head.previous = manifest.parent;
  return head;
}

}  // namespace everstep::storage
