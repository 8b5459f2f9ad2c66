#include "tests/launcher/checkpoint/small_job.h"

#include <algorithm>

#include "launcher/job/stored_model.h"
#include "trainer/checkpoints/state_tensors.h"

namespace everstep::launcher {
namespace {

constexpr int kWindow = 4;
constexpr std::uint64_t kLineage = 0x1122334455667788;

// Numbers that depend on nothing but the name of the parameter and the seed, so that tied copies are equal.
void fill(const trainer::Buffer& buffer, const trainer::StageLayout& layout, std::uint64_t seed) {
  for (const trainer::StageLayout::Entry& entry : layout.entries) {
    std::uint64_t state = seed * 1'000'003;
    for (const char c : entry.parameter.tied ? std::string("tied") : entry.parameter.name) state = state * 31 + c;
    const std::span<float> all = buffer.as<float>();
    for (float& number :
         all.subspan(static_cast<std::size_t>(entry.offset), static_cast<std::size_t>(entry.parameter.elements()))) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      number = static_cast<float>(static_cast<std::int64_t>(state >> 40) - (1 << 23)) * 0x1p-27F;
    }
  }
}

trainer::StageState state_of(const trainer::StageLayout& layout, const SmallCheckpoint& checkpoint) {
  const auto bytes = static_cast<std::size_t>(layout.elements) * sizeof(float);
  const auto filled = [&](std::uint64_t salt) {
    trainer::Buffer buffer = trainer::allocate_zeroed(bytes);
    fill(buffer, layout, checkpoint.seed + salt);
    return buffer;
  };
  trainer::StageState state;
  state.weights = filled(0);
  state.first_moment = filled(1000);
  state.second_moment = filled(2000);
  if (checkpoint.kind == trainer::CutKind::kLive) state.previous = filled(3000);
  if (checkpoint.kind == trainer::CutKind::kInWindow) state.gradients = filled(4000);
  return state;
}

}  // namespace

trainer::ModelConfig small_gpt() {
  trainer::ModelConfig model;
  model.shape = {"gpt2-tiny", scheduler::ModelFamily::kGpt, 2, 16, 2, 8, 32};
  model.dropout = 0;
  return model;
}

trainer::ModelConfig small_bert(bool next_sentence) {
  trainer::ModelConfig model;
  model.shape = {"bert-tiny", scheduler::ModelFamily::kBert, 2, 16, 2, 8, 32};
  model.dropout = 0;
  model.next_sentence = next_sentence;
  return model;
}

SmallJob::SmallJob(const std::string& directory, trainer::ModelConfig model, const std::string& secret,
                   const std::string& job)
    : model_(std::move(model)), location_{directory, job, secret} {
  auto store = open_checkpoint_store(location_, StoreAccess::kCreate);
  EVERSTEP_CHECK(store.ok(), store.error().line());
  store_ = std::move(store).value();
}

storage::CatalogEntry SmallJob::commit(const SmallCheckpoint& checkpoint) {
  const bool is_inside = checkpoint.kind == trainer::CutKind::kInWindow;
  storage::Manifest manifest;
  manifest.job = location_.job;
  manifest.lineage = kLineage;
  manifest.version = {checkpoint.step};
  manifest.applied = checkpoint.step;
  manifest.name = {{1}, {checkpoint.step * kWindow + (is_inside ? 2 : 0)}, static_cast<std::uint32_t>(0xabc)};
  manifest.plan = {checkpoint.schedule, 2, 2, 1, kWindow, 2, {0, 2, model_.blocks()}};
  manifest.blocks = model_.blocks();
  if (is_inside) manifest.window_losses = {{0, 2.0}, {1, 3.0}};
  manifest.loss = checkpoint.loss;
  manifest.configuration = model_settings(model_);
  for (const auto& setting : checkpoint.more_settings) manifest.configuration.push_back(setting);
  std::sort(manifest.configuration.begin(), manifest.configuration.end());
  manifest.provenance = {{"everstep", "test"}};

  EVERSTEP_CHECK(store_->files().files.make_directories(directory_of(kLineage, manifest.name)).ok(), "a directory");
  trainer::StagedCut cut;
  cut.kind = checkpoint.kind;
  cut.position = manifest.name.position;
  cut.version = manifest.version;
  cut.nonce = manifest.name.nonce;
  const trainer::StageLayout layout = layout_of(model_, 0, model_.blocks());
  cut.stages.push_back({0, layout, state_of(layout, checkpoint)});
  std::uint32_t count = 0;
  for (storage::BlockState& file : block_states(model_, trainer::Accumulation::kFloat, cut, {1})) {
    file.record.writer = {7, count++};
    auto record = write_block_file(store_->files(), manifest.job, kLineage, file);
    EVERSTEP_CHECK(record.ok(), record.error().line());
    manifest.files.push_back(std::move(record).value());
  }

  storage::LedgerSegment ledger;
  ledger.lineage = kLineage;
  ledger.begin = last_ ? last_->manifest.name.position : Position{0};
  ledger.end = manifest.name.position;
  const std::string plan = "1f1b D=2 P=1 W=1 M=4 preload=2 cuts=0,2," + std::to_string(model_.blocks());
  for (Position at = ledger.begin; at < ledger.end;) {
    const auto first = static_cast<int>(at.value % kWindow);
    const int end = static_cast<int>(std::min<std::int64_t>(kWindow, first + ledger.end.value - at.value));
    const std::vector<double> losses(static_cast<std::size_t>(end - first), 2.5);
    ledger.entries.push_back({at.value / kWindow, first, end, {1}, plan, false, false, losses});
    at.value += end - first;
  }
  auto entry = store_->catalog().commit({manifest, {7, 0xffff}, ledger, last_});
  EVERSTEP_CHECK(entry.ok(), entry.error().line());
  last_ = *entry;
  return *entry;
}

std::string SmallJob::path_of_file(const storage::CatalogEntry& entry, int block, storage::StateKind kind) const {
  return location_.path() + "/" + path_of(kLineage, *entry.manifest.find(block, kind));
}

std::string SmallJob::path_of_manifest(const storage::CatalogEntry& entry) const {
  return location_.path() + "/" + manifest_path(kLineage, entry.head.checkpoint, entry.head.writer);
}

}  // namespace everstep::launcher
