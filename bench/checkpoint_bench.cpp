// Usage: checkpoint_bench DIRECTORY [MIB [THREADS]]
//
// Saves and loads a checkpoint of MIB (512) MiB in 64 tensors as training does: eight blocks with weights, previous
// weights and both moments, copied into staging that is warm, written by THREADS (2) threads as HDF5, hashed, synced
// and committed; then loaded by as many, every byte verified, into tensors. DIRECTORY is made and must be new.
// Prints one line of JSON: the seconds of each part.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/text.h"
#include "storage/catalog.h"
#include "storage/hdf5/hdf5_format.h"
#include "storage/json/document_json.h"
#include "storage/openssl/openssl_hashing.h"
#include "storage/posix/posix_file_system.h"

namespace everstep::storage {
namespace {

constexpr int kBlocks = 8;
constexpr int kWeightsPerBlock = 2;
constexpr int kTensors = kBlocks * kWeightsPerBlock * 4;  // weights, previous weights, two moments
constexpr std::uint64_t kLineage = 0x2a;
const std::string kJob = "bench";

template <typename Value>
Value take(Result<Value> result) {
  EVERSTEP_CHECK(result.ok(), result.error().line());
  return std::move(result).value();
}

double seconds_of(const std::function<void()>& action) {
  const auto begin = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Calls `action` once with each index; the threads take the next one when they are free.
void for_each_index(std::size_t count, int threads, const std::function<void(std::size_t)>& action) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) action(i);
  };
  std::vector<std::thread> helpers;
  for (int i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
}

using Tensor = std::unique_ptr<std::byte[]>;

// Tensors whose memory is there, as that of a model is.
std::vector<Tensor> allocate_tensors(std::size_t bytes) {
  std::vector<Tensor> tensors;
  for (int i = 0; i < kTensors; ++i) tensors.push_back(std::make_unique<std::byte[]>(bytes));
  return tensors;
}

void fill(std::vector<Tensor>& tensors, std::size_t bytes) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const RandomStream random(1, i);
    for (std::size_t k = 0; k + 8 <= bytes; k += 8) {
      const std::uint64_t word = random.bits(k);
      std::memcpy(tensors[i].get() + k, &word, sizeof(word));
    }
  }
}

Manifest manifest_of(std::size_t tensor_bytes) {
  Manifest manifest;
  manifest.job = kJob;
  manifest.lineage = kLineage;
  manifest.name = {Generation{1}, Position{4}, 1};
  manifest.version = Version{1};
  manifest.applied = 1;
  manifest.plan = {"amdp", 1, 2, 1, 4, 2, {0, kBlocks}};
  manifest.blocks = kBlocks;
  for (int block = 0; block < kBlocks; ++block) {
    for (const StateKind kind : {StateKind::kWeights, StateKind::kPrevious, StateKind::kOptimizer}) {
      FileRecord record;
      record.block = block;
      record.kind = kind;
      record.version = Version{kind == StateKind::kPrevious ? 0 : 1};
      record.written_by = manifest.name;
      record.writer.random = static_cast<std::uint32_t>(manifest.files.size());
      const bool is_optimizer = kind == StateKind::kOptimizer;
      for (const char* group : {"first_moment/", "second_moment/"}) {
        for (int i = 0; i < kWeightsPerBlock; ++i) {
          record.tensors.push_back({(is_optimizer ? group : "") + ("weight" + std::to_string(i)),
                                    ElementType::kFloat32,
                                    {static_cast<std::int64_t>(tensor_bytes / 4)}});
        }
        if (!is_optimizer) break;
      }
      manifest.files.push_back(std::move(record));
    }
  }
  return manifest;
}

class CheckpointBench {
 public:
  CheckpointBench(const std::string& directory, std::size_t bytes, int threads)
      : files_(take(open_posix_file_system(directory, true))),
        tensor_bytes_(bytes / kTensors / 64 * 64),
        threads_(threads),
        manifest_(manifest_of(tensor_bytes_)) {
    for (const FileRecord& file : manifest_.files)
      first_tensor_.push_back(std::exchange(tensors_, tensors_ + static_cast<int>(file.tensors.size())));
    EVERSTEP_CHECK(tensors_ == kTensors, "the files hold all tensors");
    fill(state_, tensor_bytes_);
    copy(state_, staging_);  // so that its memory is there
  }

  void stage() { copy(state_, staging_); }

  void save() {
    const auto made = catalog_.make_directory(kLineage, manifest_.name);
    EVERSTEP_CHECK(made.ok(), made.error().line());
    for_each_index(manifest_.files.size(), threads_, [this](std::size_t i) {
      BlockState state{manifest_.files[i], {}};
      for (std::size_t k = 0; k < state.record.tensors.size(); ++k) {
        state.tensors.emplace_back(staging_[first_tensor_[i] + k].get(), tensor_bytes_);
      }
      manifest_.files[i] = take(write_block_file(ports_.files, kJob, kLineage, state));
    });
    CommitRequest request;
    request.manifest = manifest_;
    request.ledger.lineage = kLineage;
    request.ledger.end = manifest_.name.position;
    LedgerEntry entry;
    entry.end = 4;
    entry.generation = manifest_.name.generation;
    entry.plan = "amdp D=1 P=2 W=1 M=4";
    entry.losses = {1, 1, 1, 1};
    request.ledger.entries.push_back(std::move(entry));
    take(catalog_.commit(request));
  }

  void load() {
    for_each_index(manifest_.files.size(), threads_, [this](std::size_t i) {
      const FileRecord& record = manifest_.files[i];
      const LoadedBlockFile loaded = take(load_block_file(ports_.files, kJob, kLineage, record));
      for (std::size_t k = 0; k < record.tensors.size(); ++k) {
        const auto bytes = loaded.tensor(record, static_cast<int>(k));
        std::memcpy(loaded_[first_tensor_[i] + k].get(), bytes.data(), bytes.size());
      }
    });
  }

  bool loaded_what_was_saved() const {
    for (std::size_t i = 0; i < state_.size(); ++i) {
      if (std::memcmp(state_[i].get(), loaded_[i].get(), tensor_bytes_) != 0) return false;
    }
    return true;
  }

 private:
  // By the training's own thread.
  void copy(const std::vector<Tensor>& from, std::vector<Tensor>& to) const {
    for (std::size_t i = 0; i < from.size(); ++i) std::memcpy(to[i].get(), from[i].get(), tensor_bytes_);
  }

  std::unique_ptr<FileSystem> files_;
  std::unique_ptr<Hashing> hashing_ = make_openssl_hashing();
  std::unique_ptr<TensorFormat> tensor_format_ = make_hdf5_format();
  std::unique_ptr<DocumentFormat> documents_ = make_json_documents();
  Seal seal_{*hashing_, "secret"};
  std::unique_ptr<HeadStore> head_ = make_file_head_store(*files_, *documents_, seal_);
  CatalogPorts ports_{{*files_, *hashing_, *tensor_format_}, *documents_, seal_, *head_};
  Catalog catalog_{ports_};
  std::size_t tensor_bytes_;
  int threads_;
  Manifest manifest_;
  int tensors_ = 0;
  std::vector<int> first_tensor_;  // of each file
  std::vector<Tensor> state_ = allocate_tensors(tensor_bytes_);
  std::vector<Tensor> staging_ = allocate_tensors(tensor_bytes_);
  std::vector<Tensor> loaded_ = allocate_tensors(tensor_bytes_);
};

}  // namespace
}  // namespace everstep::storage

int main(int argc, char** argv) {
  using everstep::storage::seconds_of;
  const int mib = argc > 2 ? everstep::parse_number<int>(argv[2]).value_or(0) : 512;
  const int threads = argc > 3 ? everstep::parse_number<int>(argv[3]).value_or(0) : 2;
  if (argc < 2 || argc > 4 || mib < 1 || threads < 1) {
    std::fprintf(stderr, "usage: checkpoint_bench DIRECTORY [MIB [THREADS]]\n");
    return 64;
  }
  everstep::storage::CheckpointBench bench(argv[1], static_cast<std::size_t>(mib) << 20, threads);
  const double stall = seconds_of([&] { bench.stage(); });
  const double save = seconds_of([&] { bench.save(); });
  const double load = seconds_of([&] { bench.load(); });
  std::printf("{\"stall_s\": %.4f, \"save_s\": %.4f, \"load_s\": %.4f}\n", stall, save, load);
  if (bench.loaded_what_was_saved()) return 0;
  std::fprintf(stderr, "checkpoint_bench: what was loaded is not what was saved\n");
  return 1;
}
