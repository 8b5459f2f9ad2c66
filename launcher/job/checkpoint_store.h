#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "storage/catalog.h"

namespace everstep::launcher {

// Where the checkpoints of one job are: in the directory <directory>/<job>.
struct StoreLocation {
  std::string directory;
  std::string job = "job";
  std::string secret;  // empty: hashes are verified, authenticity is not

  std::string path() const { return directory + "/" + job; }
  bool operator==(const StoreLocation&) const = default;
};

enum class StoreAccess {
  kExisting,  // a job without a directory is kNotFound
  kCreate,    // makes what is missing of <directory>/<job>
};

// The catalog of one job on a real file system, and the ports it was wired from. They live as long as the store.
class CheckpointStore {
 public:
  virtual ~CheckpointStore() = default;

  virtual storage::Catalog& catalog() = 0;
  virtual storage::CatalogPorts ports() = 0;

  // Each for itself is safe from any thread, with different files.
  virtual storage::FilePorts files() = 0;
};

Result<std::unique_ptr<CheckpointStore>> open_checkpoint_store(const StoreLocation& location, StoreAccess access);

// The secret in that file, without the newline at its end. A file that anyone but its owner may read or write is
// refused, and so is one with fewer than 16 or more than 4096 bytes.
Result<std::string> read_secret_file(const std::string& path);

}  // namespace everstep::launcher
