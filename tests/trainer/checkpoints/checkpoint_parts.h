#pragma once

#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "storage/catalog.h"
#include "storage/hdf5/hdf5_format.h"
#include "storage/json/document_json.h"
#include "storage/openssl/openssl_hashing.h"
#include "tests/storage/fakes/crash_file_system.h"
#include "trainer/checkpoints/checkpoint_writer.h"
#include "trainer/checkpoints/commit_assembly.h"

namespace everstep::trainer {

inline constexpr const char* kPlanText = "1f1b D=2 P=1 W=1 M=4";
inline constexpr std::uint64_t kLineage = 0x0123456789abcdef;
inline constexpr int kWindow = 4;

// Runs out of memory when it is told to.
class ThrowingHashing final : public storage::Hashing {
 public:
  std::unique_ptr<storage::Hasher> sha256() const override {
    if (throws) throw std::bad_alloc();
    return real_->sha256();
  }
  storage::Digest hmac_sha256(std::string_view key, std::string_view text) const override {
    return real_->hmac_sha256(key, text);
  }

  std::atomic<bool> throws{false};

 private:
  std::unique_ptr<storage::Hashing> real_ = storage::make_openssl_hashing();
};

// A job's directory in memory, behind real formats.
struct MemoryStore {
  storage::CrashFileSystem files;
  std::unique_ptr<ThrowingHashing> hashing = std::make_unique<ThrowingHashing>();
  std::unique_ptr<storage::TensorFormat> tensors = storage::make_hdf5_format();
  std::unique_ptr<storage::DocumentFormat> documents = storage::make_json_documents();
  storage::Seal seal{*hashing, ""};
  std::unique_ptr<storage::HeadStore> head = storage::make_file_head_store(files, *documents, seal);

  storage::CatalogPorts ports() { return {{files, *hashing, *tensors}, *documents, seal, *head}; }
  storage::Catalog catalog() { return storage::Catalog(ports()); }

  std::vector<std::string> files_with(std::string_view part) const {
    std::vector<std::string> found;
    for (std::string& path : files.all_files()) {
      if (path.find(part) != std::string::npos) found.push_back(std::move(path));
    }
    return found;
  }
};

// The smallest model there is: four blocks.
inline ModelConfig small_model() {
  ModelConfig model;
  model.shape = {"small", scheduler::ModelFamily::kGpt, 2, 8, 2, 4, 16};
  return model;
}

inline WriterSetup writer_setup(int rank) {
  WriterSetup setup;
  setup.job = "job";
  setup.lineage = kLineage;
  setup.generation = {1};
  setup.rank = rank;
  setup.threads = 2;
  setup.model = small_model();
  return setup;
}

// The state of blocks [first, end) at an update, as a worker stages it; two workers share the model.
inline StagedCut staged_cut(int rank, std::int64_t version, std::uint32_t nonce, CutKind kind = CutKind::kFlush) {
  StagedCut cut;
  cut.kind = kind;
  cut.version = {version};
  cut.position = {version * kWindow};
  cut.nonce = nonce;
  cut.applied = version;
  StagedStage stage;
  stage.stage = rank;
  stage.layout = layout_of(small_model(), rank == 0 ? 0 : 2, rank == 0 ? 2 : 4);
  const auto bytes = static_cast<std::size_t>(stage.layout.elements) * sizeof(float);
  for (Buffer* buffer : {&stage.state.weights, &stage.state.first_moment, &stage.state.second_moment}) {
    *buffer = allocate_zeroed(bytes);
  }
  if (kind == CutKind::kLive) stage.state.previous = allocate_zeroed(bytes);
  if (kind == CutKind::kInWindow) stage.state.gradients = allocate_zeroed(bytes);
  cut.stages.push_back(std::move(stage));
  return cut;
}

// A cut after two of the window's four minibatches, of which each worker saw one end.
inline StagedCut cut_inside_window(int rank, std::int64_t version, std::uint32_t nonce) {
  StagedCut cut = staged_cut(rank, version, nonce, CutKind::kInWindow);
  cut.position.value += 2;
  cut.losses.push_back({rank, 0.5});
  return cut;
}

inline WindowHistory finished_window(std::int64_t window) {
  WindowHistory history;
  history.window = window;
  history.end = kWindow;
  history.flushed = true;
  history.generation = {1};
  history.plan = kPlanText;
  history.losses.assign(kWindow, static_cast<double>(window) + 0.25);
  return history;
}

inline RunFacts run_facts() {
  RunFacts facts;
  facts.job = "job";
  facts.lineage = kLineage;
  facts.generation = {1};
  facts.plan.schedule = "1f1b";
  facts.plan.depth = 2;
  facts.plan.window = kWindow;
  facts.plan.cuts = {0, 2, 4};
  facts.plan_text = kPlanText;
  facts.blocks = 4;
  facts.accumulation = "float32";
  facts.configuration = {{"model", "small"}};
  facts.provenance = {{"everstep", "test"}};
  return facts;
}

}  // namespace everstep::trainer
