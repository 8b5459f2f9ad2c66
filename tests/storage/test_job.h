#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "storage/catalog.h"

namespace everstep::storage {

// Sanitizers look for what a fault does to the program, which fewer cases show as well.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

inline constexpr int kWindow = 4;
inline constexpr std::uint64_t kLineage = 0x1122334455667788;

// A checkpoint to be made of made-up state, which is a function of block, kind and version (gradients: position), so
// that what is restored can be compared with what was meant and not with what was written.
struct TestSave {
  Generation generation{1};
  Position position = {};  // inside a window it has gradients
  std::uint32_t nonce = 0;
  bool live = false;   // with the version before
  bool reuse = false;  // the parent's files where the state is the same
  std::optional<CatalogEntry> parent = std::nullopt;
  std::optional<double> validation_loss = std::nullopt;
  std::uint32_t writer = 0;  // author in the tags of the process that saves; 0: another one for each generation
  int blocks = 2;
  std::optional<Head> found = std::nullopt;  // CatalogListing::newest when the run of this generation began
};

// CatalogListing::newest now, for a run that begins.
std::optional<Head> newest_head(const Catalog& catalog);

// Catalog::newest_accepted with verify().
Result<CatalogEntry> newest_good(const Catalog& catalog, std::optional<Version> step = {},
                                 const std::function<void(const Damage&)>& on_damage = {});

// A job's directory on some file system, as one process sees it.
class TestJob {
 public:
  // `head` replaces the file HEAD; null: none does.
  explicit TestJob(FileSystem& files, HeadStore* head = nullptr, const TensorFormat* tensors = nullptr);
  ~TestJob();

  Catalog& catalog() { return *catalog_; }
  CatalogPorts ports();

  // The files of a save, written and synced, as a request to commit them.
  Result<CommitRequest> write(const TestSave& save);

  // write() and commit().
  Result<CatalogEntry> save(const TestSave& save);

  // Loads all files and compares every byte with what the state must be.
  Status check_content(const CatalogEntry& entry);

 private:
  Result<FileRecord> write_file(const TestSave& save, int block, StateKind kind, Version version);

  FileSystem& files_;
  std::unique_ptr<Hashing> hashing_;
  std::unique_ptr<DocumentFormat> documents_;
  std::unique_ptr<TensorFormat> flat_;
  const TensorFormat& tensors_;
  Seal seal_;
  std::unique_ptr<HeadStore> file_head_;
  HeadStore& head_;
  std::unique_ptr<Catalog> catalog_;
};

}  // namespace everstep::storage
