#include "trainer/data/mapped_file.h"

#include <utility>

#include <sys/stat.h>

#include "tests/trainer/data/data_support.h"

namespace everstep::trainer {
namespace {

class MappedFileTest : public DataFileTest {};

std::string content(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST_F(MappedFileTest, ShowsTheBytesOfTheFile) {
  const auto file = MappedFile::open(write("a.txt", "some bytes"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(content(*file), "some bytes");
  EXPECT_EQ(file->path(), path("a.txt"));
}

TEST_F(MappedFileTest, KeepsTheMappingWhenItMoves) {
  auto first = MappedFile::open(write("a.txt", "one"));
  auto second = MappedFile::open(write("b.txt", "another"));
  ASSERT_TRUE(first.ok() && second.ok());
  MappedFile moved(std::move(*first));
  EXPECT_EQ(content(moved), "one");
  moved = std::move(*second);
  EXPECT_EQ(content(moved), "another");
}

TEST_F(MappedFileTest, SaysThatTheFileIsMissing) {
  const auto file = MappedFile::open(path("none.txt"));
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(file.error().message, "cannot read the data file " + path("none.txt") + ": No such file or directory");
}

TEST_F(MappedFileTest, RefusesWhatIsNoFileWithBytes) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const std::pair<std::string, std::string> cases[] = {
      {path(""), "it is a directory"}, {write("empty", ""), "it is empty"}, {path("pipe"), "it is not a regular file"}};
  for (const auto& [name, why] : cases) {
    const auto file = MappedFile::open(name);
    ASSERT_FALSE(file.ok()) << name;
    EXPECT_EQ(file.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(file.error().message, "cannot read the data file " + name + ": " + why);
  }
}

}  // namespace
}  // namespace everstep::trainer
