#include "storage/reshard.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

namespace everstep::storage {
namespace {

using IndexByName = std::map<std::string_view, int>;

std::string describe(const TensorSpec& tensor) {
  std::string shape;
  for (const std::int64_t size : tensor.shape) shape += (shape.empty() ? "" : ", ") + std::to_string(size);
  return std::string(to_string(tensor.type)) + " [" + shape + "]";
}

Error missing(const WantedTensor& wanted, const std::string& why) {
  return invalid_argument("tensor '" + wanted.tensor.name + "', " + std::string(to_string(wanted.kind)) + " of block " +
                          std::to_string(wanted.block) + ": " + why);
}

IndexByName index_tensors(const FileRecord& file) {
  IndexByName indices;
  for (const TensorSpec& tensor : file.tensors) indices.emplace(tensor.name, static_cast<int>(indices.size()));
  return indices;
}

// One file of the checkpoint, while it is found out what is wanted of it.
struct OpenFile {
  FileFetch fetch;
  IndexByName indices;
};

Result<FileFetch::Part> find_part(const FileRecord& file, const IndexByName& indices, const WantedTensor& wanted,
                                  std::size_t index) {
  const auto found = indices.find(wanted.tensor.name);
  if (found == indices.end()) return missing(wanted, "the checkpoint has no tensor of this name");
  const TensorSpec& stored = file.tensors[static_cast<std::size_t>(found->second)];
  if (stored != wanted.tensor) {
    return missing(wanted, "the checkpoint has " + describe(stored) + ", wanted is " + describe(wanted.tensor));
  }
  return FileFetch::Part{.tensor = found->second, .wanted = static_cast<int>(index)};
}

}  // namespace

Result<std::vector<FileFetch>> reshard(const Manifest& manifest, const std::vector<WantedTensor>& wanted) {
  std::map<std::tuple<int, StateKind>, OpenFile> open;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const FileRecord* file = manifest.find(wanted[i].block, wanted[i].kind);
    if (file == nullptr) return missing(wanted[i], "the checkpoint has no such file");
    const auto [entry, is_new] = open.try_emplace({file->block, file->kind});
    if (is_new) entry->second = {.fetch = {.file = *file, .parts = {}}, .indices = index_tensors(*file)};
    const auto part = find_part(*file, entry->second.indices, wanted[i], i);
    if (!part) return part.error();
    entry->second.fetch.parts.push_back(*part);
  }
  std::vector<FileFetch> fetches;
  for (auto& [key, file] : open) {
    std::ranges::sort(file.fetch.parts, {},
                      [](const FileFetch::Part& part) { return std::tuple(part.tensor, part.wanted); });
    fetches.push_back(std::move(file.fetch));
  }
  return fetches;
}

}  // namespace everstep::storage
