#include "elastic/sim/disk.h"

#include <utility>

#include "base/text.h"

namespace everstep::elastic::sim {
namespace {

constexpr std::size_t kPage = 16;  // small, since files are

Error failed(const std::string& path, const std::string& why) {
  return {ErrorCode::kUnavailable, "cannot write '" + path + "': " + why, ""};
}

}  // namespace

std::string_view directory_of(std::string_view path) { return path.substr(0, path.rfind('/')); }

std::string digest_of(std::string_view text) {
  std::string digest;
  for (std::uint64_t salt = 0; salt < 4; ++salt) {
    std::uint64_t hash = 0xCBF29CE484222325 + salt;
    for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3;
    hash ^= hash >> 31;
    digest += hex_text(hash);
  }
  return digest;
}

Status Disk::create(const std::string& path, bool may_exist) {
  if (is_full) return failed(path, "no space is left");
  if (files_.contains(path) && !may_exist) return failed(path, "it exists");
  File& file = files_[path];
  file.content.clear();
  file.durable.clear();
  return {};
}

Status Disk::write(const std::string& path, std::string_view text) {
  const auto found = files_.find(path);
  if (found == files_.end()) return failed(path, "it is gone");
  if (is_full) {
    found->second.content += text.substr(0, text.size() / 2);
    return failed(path, "no space is left");
  }
  found->second.content += text;
  return {};
}

Status Disk::sync(const std::string& path) {
  const auto found = files_.find(path);
  if (found == files_.end()) return failed(path, "it is gone");
  File& file = found->second;
  if (failing_syncs > 0) {
    --failing_syncs;
    file.is_lost = true;
    return failed(path, "input/output error");
  }
  file.durable = file.is_lost ? std::string(file.content.size(), '\0') : file.content;
  return {};
}

void Disk::sync_directory(std::string_view directory) {
  for (auto& [path, file] : files_) {
    if (directory_of(path) == directory) file.has_durable_name = true;
  }
}

Status Disk::remove(const std::string& path) {
  if (files_.erase(path) == 0) return not_found("there is no '" + path + "'");
  return {};
}

Result<std::string> Disk::read(const std::string& path) const {
  const auto found = files_.find(path);
  if (found == files_.end()) return not_found("there is no '" + path + "'");
  return found->second.content;
}

Result<std::string> Disk::read_durable(const std::string& path) const {
  const auto found = files_.find(path);
  if (found == files_.end()) return not_found("there is no '" + path + "'");
  if (!found->second.has_durable_name) return not_found("the name '" + path + "' is not durable");
  return found->second.durable;
}

std::vector<std::string> Disk::list(std::string_view prefix) const {
  std::vector<std::string> paths;
  for (auto it = files_.lower_bound(prefix); it != files_.end() && it->first.starts_with(prefix); ++it) {
    paths.push_back(it->first);
  }
  return paths;
}

void Disk::cut_power(Dice& dice) {
  for (auto it = files_.begin(); it != files_.end();) {
    File& file = it->second;
    if (!file.has_durable_name && dice.one_in(2)) {
      it = files_.erase(it);
      continue;
    }
    if (file.content != file.durable && !dice.one_in(4)) {
      std::string torn = file.content;
      for (std::size_t at = file.durable.size(); at < torn.size(); ++at) {
        if ((at / kPage) % 2 == 0) torn[at] = '\0';
      }
      file.content = dice.one_in(2) && !file.is_lost ? torn : file.durable;
    }
    file.durable = file.content;
    file.has_durable_name = true;
    file.is_lost = false;
    ++it;
  }
}

void Disk::damage(const std::string& path, Dice& dice) {
  File& file = files_.at(path);
  if (file.content.empty()) return;
  if (dice.one_in(3)) {
    file.content.resize(file.content.size() / 2);
  } else {
    file.content[dice.below(std::ssize(file.content))] ^= 1;
  }
  file.durable = file.content;
}

}  // namespace everstep::elastic::sim
