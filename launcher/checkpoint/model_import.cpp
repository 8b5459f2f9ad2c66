#include "launcher/checkpoint/model_import.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "base/version.h"
#include "launcher/cli/long_work.h"
#include "launcher/job/lineage.h"
#include "launcher/job/stored_model.h"
#include "trainer/checkpoints/checkpoint.h"
#include "trainer/checkpoints/state_tensors.h"

namespace everstep::launcher {
namespace {

using Entry = storage::SafetensorsFile::Entry;

// A tensor of the file as float32.
Result<std::vector<std::byte>> read_floats(const storage::ReadableFile& file, const Entry& entry) {
  std::vector<std::byte> stored(entry.tensor.bytes());
  EVERSTEP_TRY(file.read(entry.offset, stored));
  if (entry.tensor.type == storage::ElementType::kFloat32) return stored;
  // A bfloat16 is the upper half of a float.
  std::vector<std::byte> floats(2 * stored.size());
  for (std::size_t i = 0; i < stored.size(); i += 2) std::memcpy(&floats[2 * i + 2], &stored[i], 2);
  return floats;
}

// The directory of the new checkpoint; taken back unless it was committed.
class NewDirectory {
 public:
  NewDirectory(storage::FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}
  NewDirectory(const NewDirectory&) = delete;
  NewDirectory& operator=(const NewDirectory&) = delete;
  ~NewDirectory() {
    if (is_kept_) return;
    if (const auto entries = files_.list(path_); entries) {
      for (const storage::DirectoryEntry& entry : *entries) (void)files_.remove(storage::join_path(path_, entry.name));
    }
    (void)files_.remove_directory(path_);
    (void)files_.remove_directory(path_.substr(0, path_.find('/')));
  }

  void keep() { is_kept_ = true; }

 private:
  storage::FileSystem& files_;
  std::string path_;
  bool is_kept_ = false;
};

// Writes the state of one block after the other.
class BlockImport {
 public:
  BlockImport(CheckpointStore& store, const ForeignModel& source, const trainer::ModelConfig& model,
              const storage::Manifest& manifest)
      : ports_(store.files()), source_(source), model_(model), manifest_(manifest) {}

  Status write(int block, const std::vector<ImportSource>& sources, std::vector<storage::FileRecord>& records) {
    const trainer::StageLayout layout = layout_of(model_, block, block + 1);
    trainer::StageState state;
    const std::size_t bytes = static_cast<std::size_t>(layout.elements) * sizeof(float);
    state.weights = trainer::allocate_zeroed(bytes);
    state.first_moment = trainer::allocate_zeroed(bytes);
    state.second_moment = trainer::allocate_zeroed(bytes);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      EVERSTEP_TRY(fill(sources[i], state.weights, layout.entries[i]));
    }
    trainer::StagedCut cut;
    cut.nonce = manifest_.name.nonce;
    cut.stages.push_back({0, layout, state});
    for (storage::BlockState& file :
         block_states(model_, trainer::Accumulation::kFloat, cut, manifest_.name.generation)) {
      file.record.writer = {author_, device_()};
      auto record = write_block_file(ports_, manifest_.job, manifest_.lineage, file);
      if (!record) return record.error();
      records.push_back(std::move(record).value());
    }
    return {};
  }

  storage::WriterTag new_tag() { return {author_, device_()}; }

 private:
  Status fill(const ImportSource& source, const trainer::Buffer& weights, const trainer::StageLayout::Entry& place) {
    const auto floats = read_floats(*source_.file, source.entry);
    if (!floats) return floats.error();
    if (source.must_equal) {
      const auto other = read_floats(*source_.file, *source.must_equal);
      if (!other) return other.error();
      if (*floats != *other) {
        return invalid_argument(
            source_.path + ": " + source.entry.tensor.name + " and " + source.must_equal->tensor.name + " differ",
            "models whose head has an embedding of its own cannot be trained here");
      }
    }
    const auto offset = static_cast<std::size_t>(place.offset) * sizeof(float);
    std::memcpy(weights.data + offset, floats->data(), floats->size());
    return {};
  }

  storage::FilePorts ports_;
  const ForeignModel& source_;
  const trainer::ModelConfig& model_;
  const storage::Manifest& manifest_;
  std::random_device device_;
  std::uint32_t author_ = device_();
};

Result<storage::Manifest> new_manifest(const storage::Catalog& catalog, const std::string& job,
                                       const trainer::ModelConfig& model, const std::string& path) {
  const auto listing = catalog.list();
  if (!listing) return listing.error();
  if (!listing->entries.empty() || !listing->damaged.empty()) {
    return invalid_argument("the job " + job + " has checkpoints already", "name another --job");
  }
  const auto generation = catalog.next_generation();
  if (!generation) return generation.error();
  storage::Manifest manifest;
  manifest.job = job;
  manifest.lineage = random_lineage();
  manifest.name = {*generation, {0}, std::random_device{}()};
  manifest.plan.schedule = "1f1b";
  manifest.plan.chunks_per_device = 1;
  manifest.plan.preload = 0;
  manifest.plan.cuts = {0, model.blocks()};
  manifest.blocks = model.blocks();
  manifest.accumulation = accumulation_name(trainer::Accumulation::kFloat);
  manifest.configuration = model_settings(model);
  manifest.provenance = {{"everstep", std::string(kVersion)}, {"imported", path}};
  return manifest;
}

std::uint64_t bytes_of(const std::vector<ImportSource>& sources) {
  std::uint64_t bytes = 0;
  for (const ImportSource& source : sources) bytes += source.entry.tensor.bytes();
  return bytes;
}

}  // namespace

Result<storage::CatalogEntry> import_model(CheckpointStore& store, const std::string& job, const ForeignModel& source,
                                           const trainer::ModelConfig& model, const ImportPlan& plan,
                                           Streams& streams) {
  auto manifest = new_manifest(store.catalog(), job, model, source.path);
  if (!manifest) return manifest.error();
  std::uint64_t total = 0;
  for (const auto& block : plan.blocks) total += bytes_of(block);
  LongWork work(streams, "importing", total);

  storage::FileSystem& files = store.files().files;
  const std::string directory = directory_of(manifest->lineage, manifest->name);
  NewDirectory taken_back(files, directory);
  EVERSTEP_TRY(files.make_directories(directory));
  BlockImport blocks(store, source, model, *manifest);
  std::vector<storage::FileRecord> records;
  std::uint64_t done = 0;
  for (int block = 0; block < model.blocks(); ++block) {
    const auto& sources = plan.blocks[static_cast<std::size_t>(block)];
    EVERSTEP_TRY(blocks.write(block, sources, records));
    done += bytes_of(sources);
    if (!work.advance_to(done)) return work.stopped_error();
  }
  manifest->files = std::move(records);
  taken_back.keep();
  storage::LedgerSegment ledger;
  ledger.lineage = manifest->lineage;
  return store.catalog().commit({std::move(manifest).value(), blocks.new_tag(), ledger, std::nullopt});
}

}  // namespace everstep::launcher
