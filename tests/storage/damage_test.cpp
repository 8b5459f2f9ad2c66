#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "storage/hdf5/hdf5_format.h"
#include "storage/posix/posix_file_system.h"
#include "tests/storage/test_job.h"
#include "tests/temporary_directory.h"

namespace everstep::storage {
namespace {

constexpr std::uint64_t kCases = kSanitized ? 2'000 : 10'000;
constexpr std::uint64_t kSeed = 20;

enum class Harm { kBitFlip, kTruncation, kZeroedBlock, kSwap, kMissing };
constexpr std::array kHarms = {Harm::kBitFlip, Harm::kTruncation, Harm::kZeroedBlock, Harm::kSwap, Harm::kMissing};

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

// Three checkpoints of six blocks on a real disk, in HDF5.
class DamagedDirectory {
 public:
  DamagedDirectory() {
    for (const std::int64_t position : {4, 8, 12}) {
      TestSave save;
      save.position = {position};
      save.blocks = 6;
      save.live = position == 8;
      if (!saved_.empty()) save.parent = saved_.back();
      const auto entry = job_.save(save);
      EVERSTEP_CHECK(entry.ok(), entry.ok() ? "" : entry.error().line());
      saved_.push_back(*entry);
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_.path())) {
      if (!entry.is_regular_file()) continue;
      const std::string name = std::filesystem::relative(entry.path(), directory_.path()).string();
      contents_[name] = read_file(entry.path());
      names_.push_back(name);
    }
    std::sort(names_.begin(), names_.end());
  }

  const std::vector<std::string>& names() const { return names_; }
  TestJob& job() { return job_; }
  const std::vector<CatalogEntry>& saved() const { return saved_; }

  // Damages a file in one way; what was changed, which may be nothing (swapped with an equal one, zeros over zeros).
  std::vector<std::string> harm(Harm how, const RandomStream& random) {
    const std::string& name = names_[random.below(0, names_.size())];
    std::string content = contents_[name];
    switch (how) {
      case Harm::kBitFlip:
        content[random.below(1, content.size())] ^= static_cast<char>(1U << random.below(2, 8));
        break;
      case Harm::kTruncation:
        content.resize(random.below(1, content.size()));
        break;
      case Harm::kZeroedBlock: {
        const std::size_t start = random.below(1, content.size() / 4096 + 1) * 4096;
        std::fill(content.begin() + static_cast<std::ptrdiff_t>(start),
                  content.begin() + static_cast<std::ptrdiff_t>(std::min(start + 4096, content.size())), '\0');
        break;
      }
      case Harm::kSwap: {
        const std::string& other = names_[random.below(1, names_.size())];
        write_file(directory_.path() / other, content);
        write_file(directory_.path() / name, contents_[other]);
        return content == contents_[other] ? std::vector<std::string>() : std::vector{name, other};
      }
      case Harm::kMissing:
        std::filesystem::remove(directory_.path() / name);
        return {name};
    }
    write_file(directory_.path() / name, content);
    return content == contents_[name] ? std::vector<std::string>() : std::vector{name};
  }

  void restore(const std::vector<std::string>& names) {
    for (const std::string& name : names) write_file(directory_.path() / name, contents_[name]);
  }

  // What of a checkpoint must be whole for it to be used: everything but its commit record, which HEAD may replace.
  bool needs(const CatalogEntry& entry, const std::string& name) const {
    const Manifest& manifest = entry.manifest;
    if (name == manifest_path(kLineage, manifest.name, entry.head.writer)) return true;
    if (name == ledger_path(kLineage, manifest.name.position, manifest.ledger_writer)) return true;
    return std::any_of(manifest.files.begin(), manifest.files.end(),
                       [&](const FileRecord& file) { return path_of(kLineage, file) == name; });
  }

  bool is_whole(const CatalogEntry& entry, const std::vector<std::string>& harmed) const {
    const bool is_newest = entry.head == saved_.back().head;
    return std::none_of(harmed.begin(), harmed.end(), [&](const std::string& name) {
      return needs(entry, name) || (!is_newest && name == commit_record_path(kLineage, entry.head.checkpoint));
    });
  }

  // As it was written, from the disk.
  bool restores(const CatalogEntry& entry) {
    return std::all_of(entry.manifest.files.begin(), entry.manifest.files.end(), [&](const FileRecord& file) {
      const std::string name = path_of(kLineage, file);
      return read_file(directory_.path() / name) == contents_[name];
    });
  }

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<FileSystem> files_ = open_posix_file_system(directory_.path().string(), true).value();
  std::unique_ptr<TensorFormat> format_ = make_hdf5_format();
  TestJob job_{*files_, nullptr, format_.get()};
  std::vector<CatalogEntry> saved_;
  std::vector<std::string> names_;
  std::map<std::string, std::string> contents_;
};

void expect_found(DamagedDirectory& directory, const std::vector<std::string>& harmed) {
  const auto& saved = directory.saved();
  const auto whole = std::find_if(saved.rbegin(), saved.rend(),
                                  [&](const CatalogEntry& entry) { return directory.is_whole(entry, harmed); });
  std::vector<std::string> told;
  const auto newest =
      newest_good(directory.job().catalog(), {}, [&](const Damage& damage) { told.push_back(damage.checkpoint); });
  ASSERT_TRUE(newest.ok()) << newest.error();
  ASSERT_EQ(newest->head, whole->head);
  ASSERT_EQ(newest->manifest, whole->manifest);
  ASSERT_TRUE(directory.restores(*newest));
  for (const std::string& name : harmed) {
    ASSERT_TRUE(name != "HEAD" || std::find(told.begin(), told.end(), name) != told.end());
  }
  for (auto entry = saved.rbegin(); entry != whole; ++entry) {
    ASSERT_THAT(told, testing::Contains(directory_of(kLineage, entry->head.checkpoint)));
  }
  // Older ledger segments are needed by the audit only, which says so.
  const bool ledger_is_whole = std::none_of(harmed.begin(), harmed.end(), [&](const std::string& name) {
    return std::any_of(saved.begin(), saved.end(), [&](const CatalogEntry& entry) {
      return entry.head.sequence <= newest->head.sequence &&
             name == ledger_path(kLineage, entry.manifest.name.position, entry.manifest.ledger_writer);
    });
  });
  ASSERT_EQ(directory.job().catalog().ledger(*newest).ok(), ledger_is_whole);
}

TEST(Damage, IsFoundBeforeUseWhereverItIs) {
  DamagedDirectory directory;
  std::map<Harm, int> effective;
  for (std::uint64_t number = 0; number < kCases; ++number) {
    const Harm how = kHarms.at(number % kHarms.size());
    const std::vector<std::string> harmed = directory.harm(how, RandomStream(kSeed, number));
    if (!harmed.empty()) ++effective[how];
    expect_found(directory, harmed);
    if (testing::Test::HasFatalFailure()) FAIL() << "case " << number << " harmed " << testing::PrintToString(harmed);
    directory.restore(harmed);
  }
  for (const auto& [how, count] : effective) {
    EXPECT_GT(static_cast<std::uint64_t>(count) * 6, kCases);
    std::cout << "harm " << static_cast<int>(how) << ": " << count << " cases that changed something\n";
  }
}

TEST(Damage, WhatIsWholeLoadsFromHdf5) {
  DamagedDirectory directory;
  for (const CatalogEntry& entry : directory.saved()) {
    const Status same = directory.job().check_content(entry);
    EXPECT_TRUE(same.ok()) << same.error();
  }
}

}  // namespace
}  // namespace everstep::storage
