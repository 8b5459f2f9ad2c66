#pragma once

#include <memory>
#include <optional>
#include <string>

#include "launcher/job/checkpoint_store.h"
#include "trainer/checkpoints/checkpoint.h"
#include "trainer/model/model_config.h"

namespace everstep::launcher {

// Models whose checkpoints are a few kilobytes.
trainer::ModelConfig small_gpt();
trainer::ModelConfig small_bert(bool next_sentence);

struct SmallCheckpoint {
  std::int64_t step = 0;
  trainer::CutKind kind = trainer::CutKind::kFlush;
  std::uint64_t seed = 1;  // of the weights
  double loss = 2.5;
  storage::Settings more_settings{};  // besides the model's
  std::string schedule = "amdp";
};

// A job with real checkpoints, written through the catalog as the trainer does it.
class SmallJob {
 public:
  SmallJob(const std::string& directory, trainer::ModelConfig model, const std::string& secret = "",
           const std::string& job = "job");

  storage::CatalogEntry commit(const SmallCheckpoint& checkpoint);

  CheckpointStore& store() { return *store_; }
  const trainer::ModelConfig& model() const { return model_; }

  // The path of a file of a checkpoint, on the real file system.
  std::string path_of_file(const storage::CatalogEntry& entry, int block, storage::StateKind kind) const;
  std::string path_of_manifest(const storage::CatalogEntry& entry) const;

 private:
  trainer::ModelConfig model_;
  StoreLocation location_;
  std::unique_ptr<CheckpointStore> store_;
  std::optional<storage::CatalogEntry> last_;
};

}  // namespace everstep::launcher
