#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "elastic/sim/dice.h"

namespace everstep::elastic::sim {

// The file system that all workers share, and what a power cut would leave of it. Bytes are durable once the file was
// synced, names once the directory was; a name is "directory/file".
class Disk {
 public:
  bool is_full = false;   // nothing can be written
  int failing_syncs = 0;  // so many syncs to come fail, and lose what they should have made durable

  Status create(const std::string& path, bool may_exist = false);
  Status write(const std::string& path, std::string_view text);  // appends
  // A sync after one that failed succeeds, and makes nothing better.
  Status sync(const std::string& path);
  void sync_directory(std::string_view directory);
  Status remove(const std::string& path);

  Result<std::string> read(const std::string& path) const;
  // What would be there after a power cut in the worst case.
  Result<std::string> read_durable(const std::string& path) const;
  std::vector<std::string> list(std::string_view prefix) const;  // paths

  // Loses, tears or keeps what was not synced.
  void cut_power(Dice& dice);

  void damage(const std::string& path, Dice& dice);

 private:
  struct File {
    std::string content;
    std::string durable;  // bytes as of the last sync
    bool has_durable_name = false;
    bool is_lost = false;  // a sync failed: what was written before never gets to the disk
  };

  std::map<std::string, File, std::less<>> files_;
};

std::string_view directory_of(std::string_view path);

// 64 hexadecimal digits.
std::string digest_of(std::string_view text);

}  // namespace everstep::elastic::sim
