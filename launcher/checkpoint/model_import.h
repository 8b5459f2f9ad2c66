#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "launcher/cli/command.h"
#include "launcher/job/checkpoint_store.h"
#include "storage/json/safetensors.h"
#include "trainer/model/model_config.h"

namespace everstep::launcher {

// A model of Hugging Face's: the weights, and config.json if there is one beside them.
struct ForeignModel {
  std::string path;  // of the weights, as the user knows them
  std::unique_ptr<storage::ReadableFile> file;
  storage::SafetensorsFile content;
  std::optional<trainer::ModelConfig> model;
};

// Opens a .safetensors file, or model.safetensors in a directory. config.json is read unless `needs_config` is false.
Result<ForeignModel> open_foreign_model(const std::string& path, bool needs_config);

// Where each parameter lies in a file. The tied head has the embedding's place unless the file has it too.
struct ImportSource {
  storage::SafetensorsFile::Entry entry;
  std::optional<storage::SafetensorsFile::Entry> must_equal;
};

struct ImportPlan {
  std::vector<std::vector<ImportSource>> blocks;  // by block and parameter
  std::vector<std::string> ignored;               // tensors of the file that the model has no use for
};

// kInvalidArgument names a tensor that is missing or has another shape.
Result<ImportPlan> plan_import(const trainer::ModelConfig& model, const storage::SafetensorsFile& content);

// Makes the first checkpoint of a job: step 0 with these weights and moments of zero, from which `everstep train
// --resume` goes on. Refuses a job that has a checkpoint. A failure or a signal (kCancelled) leaves none of its files.
// Holds one block in memory.
Result<storage::CatalogEntry> import_model(CheckpointStore& store, const std::string& job, const ForeignModel& source,
                                           const trainer::ModelConfig& model, const ImportPlan& plan, Streams& streams);

}  // namespace everstep::launcher
