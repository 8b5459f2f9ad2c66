#include "tests/storage/test_job.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/random.h"
#include "storage/json/document_json.h"
#include "storage/openssl/openssl_hashing.h"
#include "tests/storage/fakes/flat_tensor_format.h"

namespace everstep::storage {
namespace {

constexpr const char* kJob = "job";

std::vector<TensorSpec> tensors_of(int block, StateKind kind) {
  const std::string name = "block." + std::to_string(block);
  const std::vector<TensorSpec> weights = {{name + ".weight", ElementType::kFloat32, {6, 4}},
                                           {name + ".bias", ElementType::kFloat32, {3}}};
  if (kind != StateKind::kOptimizer) return weights;
  std::vector<TensorSpec> moments;
  for (const TensorSpec& weight : weights) {
    for (const char* group : {"first_moment/", "second_moment/"}) {
      moments.push_back({group + weight.name, weight.type, weight.shape});
    }
  }
  return moments;
}

// Previous weights are the weights one version before: the same bytes.
std::vector<std::byte> state_bytes(const FileRecord& file, Position position, std::size_t tensor) {
  const StateKind kind = file.kind == StateKind::kPrevious ? StateKind::kWeights : file.kind;
  const std::int64_t time = kind == StateKind::kGradients ? position.value : file.version.value;
  const RandomStream random(static_cast<std::uint64_t>(time) * 4 + static_cast<std::uint64_t>(kind),
                            static_cast<std::uint64_t>(file.block) * 100 + tensor);
  std::vector<std::byte> bytes(file.tensors[tensor].bytes());
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(random.bits(i / 8) >> (i % 8 * 8));
  return bytes;
}

LedgerSegment ledger_of(const TestSave& save) {
  LedgerSegment segment{kLineage, {}, {}, save.position, {}};
  if (save.parent) segment.begin = save.parent->manifest.name.position;
  for (std::int64_t at = segment.begin.value; at < segment.end.value;) {
    const std::int64_t window = at / kWindow;
    const std::int64_t end = std::min(segment.end.value, (window + 1) * kWindow);
    LedgerEntry entry{window, static_cast<int>(at % kWindow), 0, save.generation, "amdp", false, false, {}};
    entry.end = entry.first + static_cast<int>(end - at);
    for (; at < end; ++at) entry.losses.push_back(1.0 / static_cast<double>(at + 1));
    segment.entries.push_back(std::move(entry));
  }
  return segment;
}

Manifest manifest_of(const TestSave& save) {
  Manifest manifest;
  manifest.job = kJob;
  manifest.lineage = kLineage;
  manifest.name = {save.generation, save.position, save.nonce};
  manifest.version = {save.position.value / kWindow};
  manifest.applied = manifest.version.value;
  manifest.plan.schedule = "amdp";
  manifest.plan.window = kWindow;
  manifest.plan.cuts = {0, save.blocks};
  manifest.blocks = save.blocks;
  manifest.validation_loss = save.validation_loss;
  for (int i = 0; i < manifest.minibatches_into_window(); ++i) manifest.window_losses.push_back({i, 0.5});
  return manifest;
}

// Of files (`what` 0) or of manifest and ledger (1).
WriterTag writer_of(const TestSave& save, std::uint32_t what) {
  const std::uint32_t own = static_cast<std::uint32_t>(save.generation.value) + 1000;
  return {save.writer != 0 ? save.writer : own, 2 * save.nonce + what};
}

}  // namespace

std::optional<Head> newest_head(const Catalog& catalog) {
  const auto listing = catalog.list();
  return listing ? listing->newest : std::nullopt;
}

Result<CatalogEntry> newest_good(const Catalog& catalog, std::optional<Version> step,
                                 const std::function<void(const Damage&)>& on_damage) {
  return catalog.newest_accepted(
      step, [&](const CatalogEntry& entry) { return catalog.verify(entry); }, on_damage);
}

TestJob::TestJob(FileSystem& files, HeadStore* head, const TensorFormat* tensors)
    : files_(files),
      hashing_(make_openssl_hashing()),
      documents_(make_json_documents()),
      flat_(std::make_unique<FlatTensorFormat>()),
      tensors_(tensors == nullptr ? *flat_ : *tensors),
      seal_(*hashing_, ""),
      file_head_(make_file_head_store(files, *documents_, seal_)),
      head_(head == nullptr ? *file_head_ : *head),
      catalog_(std::make_unique<Catalog>(ports())) {}

TestJob::~TestJob() = default;

CatalogPorts TestJob::ports() { return {{files_, *hashing_, tensors_}, *documents_, seal_, head_}; }

Result<FileRecord> TestJob::write_file(const TestSave& save, int block, StateKind kind, Version version) {
  BlockState state;
  state.record = {block, kind, version, {save.generation, save.position, save.nonce}, writer_of(save, 0), 0, {}, {}};
  state.record.tensors = tensors_of(block, kind);
  if (save.reuse && save.parent) {
    const FileRecord* known = save.parent->manifest.find(block, kind);
    if (known != nullptr && known->version == version && kind != StateKind::kGradients) return *known;
  }
  std::vector<std::vector<std::byte>> tensors;
  for (std::size_t i = 0; i < state.record.tensors.size(); ++i) {
    tensors.push_back(state_bytes(state.record, save.position, i));
    state.tensors.emplace_back(tensors.back());
  }
  return write_block_file(ports().files, kJob, kLineage, state);
}

Result<CommitRequest> TestJob::write(const TestSave& save) {
  CommitRequest request{manifest_of(save), writer_of(save, 1), ledger_of(save), save.parent, save.found};
  EVERSTEP_TRY(catalog_->make_directory(kLineage, request.manifest.name));
  std::vector<StateKind> kinds = {StateKind::kWeights};
  if (save.live) kinds.push_back(StateKind::kPrevious);
  kinds.push_back(StateKind::kOptimizer);
  if (request.manifest.minibatches_into_window() > 0) kinds.push_back(StateKind::kGradients);
  for (int block = 0; block < save.blocks; ++block) {
    for (const StateKind kind : kinds) {
      const std::int64_t back = kind == StateKind::kPrevious ? 1 : 0;
      auto file = write_file(save, block, kind, {request.manifest.version.value - back});
      if (!file) return file.error();
      request.manifest.files.push_back(std::move(*file));
    }
  }
  return request;
}

Result<CatalogEntry> TestJob::save(const TestSave& save) {
  const auto request = write(save);
  if (!request) return request.error();
  return catalog_->commit(*request);
}

Status TestJob::check_content(const CatalogEntry& entry) {
  for (const FileRecord& file : entry.manifest.files) {
    const auto loaded = load_block_file(ports().files, kJob, kLineage, file);
    if (!loaded) return loaded.error();
    for (std::size_t i = 0; i < file.tensors.size(); ++i) {
      const auto found = loaded->tensor(file, static_cast<int>(i));
      const std::vector<std::byte> meant = state_bytes(file, entry.manifest.name.position, i);
      if (!std::equal(found.begin(), found.end(), meant.begin(), meant.end())) {
        return Error{ErrorCode::kDataLoss, path_of(kLineage, file) + " restores to other bytes than were saved", ""};
      }
    }
  }
  return {};
}

}  // namespace everstep::storage
