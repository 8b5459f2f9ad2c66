#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "storage/file_system.h"

// What every FileSystem promises while nothing fails, as tests. A test program includes this once and instantiates
// FileSystemContract with its ways to make one that is empty.
namespace everstep::storage {

struct FileSystemMaker {
  std::string name;
  std::function<std::unique_ptr<FileSystem>()> make;
};

inline void PrintTo(const FileSystemMaker& maker, std::ostream* out) { *out << maker.name; }

inline std::string maker_name(const testing::TestParamInfo<FileSystemMaker>& info) { return info.param.name; }

class FileSystemContract : public testing::TestWithParam<FileSystemMaker> {
 protected:
  FileSystem& files() { return *files_; }

  void write(const std::string& path, const std::string& text) {
    const auto status = write_text(files(), path, text);
    ASSERT_TRUE(status) << status.error();
  }

  std::string text_of(const std::string& path) {
    auto text = read_text(files(), path, 1 << 20);
    return text ? *text : "cannot read: " + text.error().line();
  }

  // The code of what must be an error that names the path.
  template <typename Outcome>
  static ErrorCode code_of(const Outcome& outcome, const std::string& path) {
    if (outcome.ok()) {
      ADD_FAILURE() << "this should have failed: " << path;
      return ErrorCode::kInternal;
    }
    EXPECT_NE(outcome.error().message.find(path), std::string::npos) << outcome.error();
    return outcome.error().code;
  }

 private:
  std::unique_ptr<FileSystem> files_ = GetParam().make();
};

TEST_P(FileSystemContract, GivesBackWhatWasWrittenInPieces) {
  ASSERT_TRUE(files().make_directories("a/b"));
  auto file = files().create("a/b/file");
  ASSERT_TRUE(file) << file.error();
  std::vector<std::byte> all;
  for (const std::size_t size : {1, 0, 4096, 5000, 1 << 20}) {
    std::vector<std::byte> piece(size);
    for (std::size_t i = 0; i < size; ++i) piece[i] = static_cast<std::byte>((all.size() + i) * 2654435761u >> 24);
    ASSERT_TRUE((*file)->write(piece));
    all.insert(all.end(), piece.begin(), piece.end());
  }
  ASSERT_TRUE((*file)->sync());
  file = files().create("a/b/other");

  const auto opened = files().open("a/b/file");
  ASSERT_TRUE(opened) << opened.error();
  ASSERT_EQ((*opened)->size(), all.size());
  std::vector<std::byte> read(all.size() - 7);
  ASSERT_TRUE((*opened)->read(7, read));
  EXPECT_TRUE(std::equal(read.begin(), read.end(), all.begin() + 7));
}

TEST_P(FileSystemContract, ReadingPastTheEndIsDataLoss) {
  write("file", "12345");
  const auto file = files().open("file");
  ASSERT_TRUE(file);
  std::array<std::byte, 4> bytes{};
  EXPECT_TRUE((*file)->read(1, bytes));
  EXPECT_EQ(code_of((*file)->read(2, bytes), "file"), ErrorCode::kDataLoss);
  EXPECT_EQ(code_of((*file)->read(99, bytes), "file"), ErrorCode::kDataLoss);
  EXPECT_TRUE((*file)->read(5, std::span(bytes).first(0)));
}

TEST_P(FileSystemContract, NeverCreatesOverSomething) {
  write("file", "old");
  ASSERT_TRUE(files().make_directories("directory"));
  EXPECT_EQ(code_of(files().create("file"), "file"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(files().create("directory"), "directory"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(text_of("file"), "old");
}

TEST_P(FileSystemContract, SaysWhatIsNotThere) {
  EXPECT_EQ(code_of(files().open("file"), "file"), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(files().create("none/file"), "none"), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(files().remove("file"), "file"), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(files().remove_directory("none"), "none"), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(files().rename("file", "other"), "file"), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(files().list("none"), "none"), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(files().sync_directory("none"), "none"), ErrorCode::kNotFound);
}

TEST_P(FileSystemContract, TellsFilesFromDirectories) {
  write("file", "x");
  ASSERT_TRUE(files().make_directories("directory"));
  EXPECT_EQ(code_of(files().open("directory"), "directory"), ErrorCode::kDataLoss);
  EXPECT_EQ(code_of(files().open("file/below"), "file"), ErrorCode::kDataLoss);
  EXPECT_EQ(code_of(files().create("file/below"), "file"), ErrorCode::kDataLoss);
  EXPECT_EQ(code_of(files().list("file"), "file"), ErrorCode::kDataLoss);
  EXPECT_EQ(code_of(files().make_directories("file/below"), "file"), ErrorCode::kDataLoss);
  EXPECT_EQ(code_of(files().make_directories("file"), "file"), ErrorCode::kDataLoss);
  EXPECT_EQ(code_of(files().remove("directory"), "directory"), ErrorCode::kDataLoss);
  EXPECT_EQ(code_of(files().remove_directory("file"), "file"), ErrorCode::kDataLoss);
  EXPECT_EQ(code_of(files().rename("directory", "other"), "directory"), ErrorCode::kDataLoss);
  EXPECT_EQ(code_of(files().rename("file", "directory"), "directory"), ErrorCode::kDataLoss);
  EXPECT_EQ(text_of("file"), "x");
}

TEST_P(FileSystemContract, RefusesPathsThatLeaveTheRootOrAreNone) {
  for (const std::string path : {"../x", "a/../../x", "/etc/passwd", "a//b", "a/", ".", "a b", "a\nb"}) {
    EXPECT_EQ(code_of(files().create(path), ""), ErrorCode::kInvalidArgument) << path;
    EXPECT_EQ(code_of(files().open(path), ""), ErrorCode::kInvalidArgument) << path;
    EXPECT_EQ(code_of(files().make_directories(path), ""), ErrorCode::kInvalidArgument) << path;
    EXPECT_EQ(code_of(files().list(path), ""), ErrorCode::kInvalidArgument) << path;
    EXPECT_EQ(code_of(files().sync_directory(path), ""), ErrorCode::kInvalidArgument) << path;
    EXPECT_EQ(code_of(files().remove(path), ""), ErrorCode::kInvalidArgument) << path;
    EXPECT_EQ(code_of(files().remove_directory(path), ""), ErrorCode::kInvalidArgument) << path;
    EXPECT_EQ(code_of(files().rename(path, "y"), ""), ErrorCode::kInvalidArgument) << path;
  }
  EXPECT_EQ(code_of(files().remove_directory(""), ""), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(files().create(""), ""), ErrorCode::kInvalidArgument);
}

TEST_P(FileSystemContract, RenamesWithinOneDirectoryAndReplaces) {
  ASSERT_TRUE(files().make_directories("d"));
  write("d/new", "new");
  write("d/old", "old");
  EXPECT_EQ(code_of(files().rename("d/new", "old"), "old"), ErrorCode::kInvalidArgument);
  ASSERT_TRUE(files().rename("d/new", "d/old"));
  EXPECT_EQ(text_of("d/old"), "new");
  ASSERT_TRUE(files().sync_directory("d"));
  EXPECT_EQ(code_of(files().open("d/new"), "new"), ErrorCode::kNotFound);
}

TEST_P(FileSystemContract, ListsByNameAndForgetsWhatWasRemoved) {
  ASSERT_TRUE(files().make_directories("d/sub"));
  ASSERT_TRUE(files().make_directories("d/sub")) << "fine if it is there";
  write("d/b", "");
  write("d/B", "");
  write("d/a", "");
  using Entries = std::vector<DirectoryEntry>;
  EXPECT_EQ(*files().list("d"), (Entries{{"B", false}, {"a", false}, {"b", false}, {"sub", true}}));
  EXPECT_EQ(*files().list(""), (Entries{{"d", true}}));

  EXPECT_EQ(code_of(files().remove_directory("d"), "d"), ErrorCode::kInvalidArgument) << "it is not empty";
  for (const char* name : {"d/a", "d/b", "d/B"}) EXPECT_TRUE(files().remove(name));
  ASSERT_TRUE(files().remove_directory("d/sub"));
  EXPECT_EQ(*files().list("d"), Entries{});
  ASSERT_TRUE(files().remove_directory("d"));
  EXPECT_EQ(*files().list(""), Entries{});
}

TEST_P(FileSystemContract, AFileThatIsOpenOutlivesItsName) {
  write("file", "still here");
  const auto file = files().open("file");
  ASSERT_TRUE(file);
  ASSERT_TRUE(files().remove("file"));
  std::string text(10, ' ');
  ASSERT_TRUE((*file)->read(0, std::as_writable_bytes(std::span(text))));
  EXPECT_EQ(text, "still here");
}

TEST_P(FileSystemContract, WritesDifferentFilesFromDifferentThreads) {
  ASSERT_TRUE(files().make_directories("d"));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this, i] {
      for (int k = 0; k < 5; ++k) {
        const std::string name = std::to_string(i) + "-" + std::to_string(k);
        ASSERT_TRUE(files().make_directories("d/" + std::to_string(k)));
        ASSERT_TRUE(write_text(files(), "d/" + name, std::string(10'000, static_cast<char>('a' + i))));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(files().list("d")->size(), 25U);
  EXPECT_EQ(text_of("d/3-4"), std::string(10'000, 'd'));
}

TEST_P(FileSystemContract, ALockIsHeldByOneUntilItIsLetGo) {
  auto held = files().lock("LOCK");
  ASSERT_TRUE(held) << held.error();
  EXPECT_EQ(code_of(files().lock("LOCK"), "LOCK"), ErrorCode::kUnavailable);
  EXPECT_TRUE(files().lock("OTHER"));
  *held = nullptr;
  EXPECT_TRUE(files().lock("LOCK"));
  EXPECT_TRUE(files().lock("LOCK")) << "what was left of the last one means nothing";

  EXPECT_EQ(code_of(files().lock("none/LOCK"), "none"), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(files().lock("../LOCK"), ""), ErrorCode::kInvalidArgument);
  ASSERT_TRUE(files().make_directories("directory"));
  EXPECT_EQ(code_of(files().lock("directory"), "directory"), ErrorCode::kDataLoss);
}

TEST_P(FileSystemContract, KnowsItsFreeBytes) {
  const auto free = files().free_bytes();
  ASSERT_TRUE(free);
  EXPECT_GT(*free, 0U);
}

}  // namespace everstep::storage
