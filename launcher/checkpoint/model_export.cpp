#include "launcher/checkpoint/model_export.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <unistd.h>

#include "launcher/checkpoint/hugging_face.h"
#include "launcher/cli/long_work.h"
#include "launcher/job/stored_model.h"
#include "storage/json/safetensors.h"
#include "storage/posix/posix_file_system.h"

namespace everstep::launcher {
namespace {

using storage::FileRecord;
using storage::Manifest;
using storage::TensorSpec;

constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kConfigFile = "config.json";

// A tensor of the file to be written, and where its bytes are.
struct ExportSource {
  const FileRecord* file = nullptr;
  int tensor = 0;
};

Error unfit(const Manifest& manifest, const std::string& why) {
  return invalid_argument("the checkpoint " + to_string(manifest.name) + " cannot be exported: " + why);
}

// Index of the parameter in the file of its block.
Result<ExportSource> find_source(const Manifest& manifest, int block, const trainer::ParameterSpec& parameter) {
  const FileRecord* file = manifest.find(block, storage::StateKind::kWeights);
  if (file == nullptr) return unfit(manifest, "block " + std::to_string(block) + " has no weights");
  const auto found = std::find_if(file->tensors.begin(), file->tensors.end(), [&](const TensorSpec& tensor) {
    return tensor.name == parameter.name && tensor.shape == parameter.shape;
  });
  if (found == file->tensors.end()) {
    return unfit(manifest, parameter.name + " is not there in the shape that the configuration says");
  }
  return ExportSource{file, static_cast<int>(found - file->tensors.begin())};
}

// Reads weights; the file read last stays in memory.
class WeightReader {
 public:
  WeightReader(CheckpointStore& store, const Manifest& manifest) : ports_(store.files()), manifest_(manifest) {}

  Result<std::span<const std::byte>> bytes(const ExportSource& source) {
    if (file_ != source.file) {
      auto loaded = load_block_file(ports_, manifest_.job, manifest_.lineage, *source.file);
      if (!loaded) return loaded.error();
      loaded_ = std::move(loaded).value();
      file_ = source.file;
    }
    return loaded_.tensor(*source.file, source.tensor);
  }

  Result<storage::Digest> digest(const ExportSource& source) {
    const auto tensor = bytes(source);
    if (!tensor) return tensor.error();
    const auto hasher = ports_.hashing.sha256();
    hasher->add(*tensor);
    return hasher->finish();
  }

 private:
  storage::FilePorts ports_;
  const Manifest& manifest_;
  const FileRecord* file_ = nullptr;
  storage::LoadedBlockFile loaded_;
};

struct Export {
  std::vector<TensorSpec> specs;
  std::vector<ExportSource> sources;
  std::vector<ExportSource> tied;  // both copies

  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const TensorSpec& spec : specs) sum += spec.bytes();
    return sum;
  }
};

Result<Export> plan_export(const Manifest& manifest, const trainer::ModelConfig& model) {
  if (manifest.blocks != model.blocks()) return unfit(manifest, "its blocks are not those of its configuration");
  Export plan;
  for (int block = 0; block < model.blocks(); ++block) {
    for (const trainer::ParameterSpec& parameter : parameters_of(model, block)) {
      const auto source = find_source(manifest, block, parameter);
      if (!source) return source.error();
      if (parameter.tied) plan.tied.push_back(*source);
      if (parameter.tied && block > 0) continue;
      plan.specs.push_back(source->file->tensors[static_cast<std::size_t>(source->tensor)]);
      plan.sources.push_back(*source);
    }
  }
  return plan;
}

Status check_tied(WeightReader& reader, const Export& plan, const Manifest& manifest) {
  std::optional<storage::Digest> first;
  for (const ExportSource& source : plan.tied) {
    const auto digest = reader.digest(source);
    if (!digest) return digest.error();
    if (first && *first != *digest) return unfit(manifest, "the two copies of the token embedding differ");
    first = *digest;
  }
  return {};
}

// Files under names that nobody looks for, until all of them are complete.
class PendingFiles {
 public:
  explicit PendingFiles(storage::FileSystem& files) : files_(files) {}
  PendingFiles(const PendingFiles&) = delete;
  PendingFiles& operator=(const PendingFiles&) = delete;
  ~PendingFiles() {
    for (const auto& [pending, name] : names_) (void)files_.remove(pending);
  }

  std::string add(const std::string& name) {
    names_.emplace_back(name + "." + std::to_string(::getpid()) + ".partial", name);
    return names_.back().first;
  }

  Status publish() {
    while (!names_.empty()) {
      EVERSTEP_TRY(files_.rename(names_.back().first, names_.back().second));
      names_.pop_back();
    }
    return files_.sync_directory("");
  }

 private:
  storage::FileSystem& files_;
  std::vector<std::pair<std::string, std::string>> names_;
};

Status refuse_old_files(const storage::FileSystem& files, const std::string& directory) {
  const auto entries = files.list("");
  if (!entries) return entries.error();
  for (const storage::DirectoryEntry& entry : *entries) {
    if (entry.name == kModelFile || entry.name == kConfigFile) {
      return invalid_argument(directory + "/" + entry.name + " is there already", "name another directory");
    }
  }
  return {};
}

}  // namespace

Result<ExportReport> export_safetensors(CheckpointStore& store, const storage::CatalogEntry& entry,
                                        const std::string& directory, Streams& streams) {
  const Manifest& manifest = entry.manifest;
  const auto model = stored_model(manifest.configuration);
  if (!model) return unfit(manifest, model.error().message);
  const auto plan = plan_export(manifest, *model);
  if (!plan) return plan.error();
  const auto files = storage::open_posix_file_system(directory, true);
  if (!files) return files.error();
  EVERSTEP_TRY(refuse_old_files(**files, directory));

  LongWork work(streams, "exporting", plan->bytes());
  WeightReader reader(store, manifest);
  EVERSTEP_TRY(check_tied(reader, *plan, manifest));
  PendingFiles pending(**files);
  const auto bytes_of = [&](std::size_t i) { return reader.bytes(plan->sources[i]); };
  const Status written = write_safetensors(**files, pending.add(kModelFile), plan->specs, bytes_of,
                                           [&work](std::uint64_t bytes) { return work.advance_to(bytes); });
  if (!written) return work.is_stopped() ? work.stopped_error() : written.error();
  EVERSTEP_TRY(write_text(**files, pending.add(kConfigFile), to_text(hugging_face_config(*model)) + "\n"));
  EVERSTEP_TRY(pending.publish());
  return ExportReport{{kConfigFile, kModelFile}, plan->bytes(), plan->specs.size()};
}

}  // namespace everstep::launcher
