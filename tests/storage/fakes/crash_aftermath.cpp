#include <algorithm>
#include <utility>

#include "base/check.h"
#include "tests/storage/fakes/crash_node.h"

// What a crash leaves, and what somebody else did meanwhile.
namespace everstep::storage {
namespace {

constexpr std::size_t kPage = 4096;

void collect_files(const std::string& path, const CrashFileSystem& files, std::vector<std::string>& found) {
  const auto entries = files.list(path);
  EVERSTEP_CHECK(entries.ok(), "a directory can be listed: " + path);
  for (const DirectoryEntry& entry : *entries) {
    const std::string below = join_path(path, entry.name);
    if (entry.is_directory) {
      collect_files(below, files, found);
    } else {
      found.push_back(below);
    }
  }
}

std::vector<std::byte> surviving_bytes(std::vector<std::byte> bytes, std::size_t durable, UnsyncedBytes policy,
                                       const RandomStream& random, std::uint64_t& draws) {
  switch (policy) {
    case UnsyncedBytes::kKept:
      break;
    case UnsyncedBytes::kLost:
      bytes.resize(durable);
      break;
    case UnsyncedBytes::kTruncated: {
      const std::size_t pages = bytes.size() / kPage + 1;
      bytes.resize(std::clamp(random.below(draws++, pages) * kPage, durable, bytes.size()));
      break;
    }
    case UnsyncedBytes::kTorn:
      for (std::size_t start = durable; start < bytes.size();) {
        const std::size_t end = std::min((start / kPage + 1) * kPage, bytes.size());
        if (random.below(draws++, 2) == 0) {
          std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(start),
                    bytes.begin() + static_cast<std::ptrdiff_t>(end), std::byte{0});
        }
        start = end;
      }
      break;
  }
  return bytes;
}

}  // namespace

std::vector<CrashPolicy> crash_policies(std::uint64_t seeds) {
  std::vector<CrashPolicy> policies;
  for (const auto bytes :
       {UnsyncedBytes::kLost, UnsyncedBytes::kKept, UnsyncedBytes::kTruncated, UnsyncedBytes::kTorn}) {
    for (const auto names : {UnsyncedNames::kLost, UnsyncedNames::kKept, UnsyncedNames::kSeeded}) {
      const bool draws =
          bytes == UnsyncedBytes::kTruncated || bytes == UnsyncedBytes::kTorn || names == UnsyncedNames::kSeeded;
      for (std::uint64_t seed = 0; seed < (draws ? seeds : 1); ++seed) policies.push_back({bytes, names, seed});
    }
  }
  return policies;
}

CrashFileSystem::NodePointer CrashFileSystem::survivor(const Node& node, const CrashPolicy& policy,
                                                       std::uint64_t& draws) {
  const RandomStream random(policy.seed, 0);
  auto left = std::make_shared<Node>();
  left->is_directory = node.is_directory;
  left->bytes = surviving_bytes(node.bytes, node.durable_size, policy.bytes, random, draws);
  left->durable_size = left->bytes.size();

  auto entries = node.durable_entries;
  for (const NameChange& change : node.unsynced) {
    const bool keeps = policy.names == UnsyncedNames::kKept ||
                       (policy.names == UnsyncedNames::kSeeded && random.below(draws++, 2) == 0);
    if (keeps) change.apply(entries);
  }
  for (const auto& [name, entry] : entries) left->entries[name] = survivor(*entry, policy, draws);
  left->durable_entries = left->entries;
  return left;
}

std::unique_ptr<CrashFileSystem> CrashFileSystem::after_crash(const CrashPolicy& policy) const {
  const std::lock_guard lock(mutex_);
  auto after = std::make_unique<CrashFileSystem>();
  std::uint64_t draws = 0;
  after->root_ = root_ == nullptr ? nullptr : survivor(*root_, policy, draws);
  return after;
}

CrashFileSystem::NodePointer CrashFileSystem::clone(const NodePointer& node,
                                                    std::map<const Node*, NodePointer>& clones) {
  if (node == nullptr) return nullptr;
  NodePointer& made = clones[node.get()];
  if (made != nullptr) return made;
  made = std::make_shared<Node>(*node);
  const NodePointer copy = made;  // `clones` may move its elements below
  for (auto* entries : {&copy->entries, &copy->durable_entries}) {
    for (auto& [name, entry] : *entries) entry = clone(entry, clones);
  }
  for (NameChange& change : copy->unsynced) change.node = clone(change.node, clones);
  return copy;
}

std::unique_ptr<CrashFileSystem> CrashFileSystem::copy() const {
  const std::lock_guard lock(mutex_);
  auto made = std::make_unique<CrashFileSystem>();
  std::map<const Node*, NodePointer> clones;
  made->root_ = clone(root_, clones);
  return made;
}

CrashFileSystem::NodePointer CrashFileSystem::existing(std::string_view path) const {
  auto node = find(path);
  EVERSTEP_CHECK(node.ok(), "the test names something that exists: " + std::string(path));
  return std::move(*node);
}

void CrashFileSystem::damage(std::string_view path, std::size_t offset, std::byte flipped_bits) {
  const std::lock_guard lock(mutex_);
  existing(path)->bytes.at(offset) ^= flipped_bits;
}

void CrashFileSystem::replace(std::string_view path, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  const NodePointer node = existing(path);
  node->bytes.assign(bytes.begin(), bytes.end());
  node->durable_size = bytes.size();
}

void CrashFileSystem::vanish(std::string_view path) {
  const std::lock_guard lock(mutex_);
  if (path.empty()) {
    root_ = nullptr;
    return;
  }
  const auto place = find_place(path);
  EVERSTEP_CHECK(place.ok() && place->node != nullptr, "the test names something that exists: " + std::string(path));
  for (auto* entries : {&place->directory->entries, &place->directory->durable_entries}) entries->erase(place->name);
  std::erase_if(place->directory->unsynced, [&](const NameChange& change) { return change.node == place->node; });
}

std::vector<std::byte> CrashFileSystem::content(std::string_view path) const {
  const std::lock_guard lock(mutex_);
  return existing(path)->bytes;
}

std::vector<std::string> CrashFileSystem::all_files() const {
  std::vector<std::string> found;
  collect_files("", *this, found);
  return found;
}

}  // namespace everstep::storage
