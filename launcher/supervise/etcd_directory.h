#pragma once

#include <filesystem>
#include <memory>

#include "base/result.h"

namespace everstep::launcher {

// Where a run keeps the data of its own etcd: `etcd-…` in its directory, of a new name each time, since a run that goes
// on has nothing to do with the etcd of the run before. It is locked as long as this object lives; the lock goes with
// the process, however that ends. The data stays, unless remove() was called.
class EtcdDirectory {
 public:
  static Result<std::unique_ptr<EtcdDirectory>> make(const std::filesystem::path& run_directory);
  EtcdDirectory(const EtcdDirectory&) = delete;
  EtcdDirectory& operator=(const EtcdDirectory&) = delete;
  ~EtcdDirectory();

  const std::filesystem::path& path() const { return path_; }
  void remove() const;

 private:
  EtcdDirectory(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}

  const std::filesystem::path path_;
  const int lock_;
};

// Removes what earlier runs in that directory left behind. What a run that still lives has is locked, and stays.
void remove_left_etcd_data(const std::filesystem::path& run_directory);

}  // namespace everstep::launcher
