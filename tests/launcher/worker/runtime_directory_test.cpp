#include "launcher/worker/runtime_directory.h"

#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/temporary_directory.h"

namespace everstep::launcher {
namespace {

TEST(RuntimeDirectory, IsInTheUsersOwn) {
  const TemporaryDirectory own;
  EXPECT_EQ(runtime_directory(own.path().string(), ::geteuid()), own.file("everstep"));
}

TEST(RuntimeDirectory, IsInTmpIfTheUserHasNoneOrAnothers) {
  const TemporaryDirectory own;
  std::ofstream(own.file("file")) << "text";
  const std::string number = std::to_string(::geteuid());
  EXPECT_EQ(runtime_directory(std::nullopt, ::geteuid()), "/tmp/everstep-" + number);
  EXPECT_EQ(runtime_directory("", ::geteuid()), "/tmp/everstep-" + number);
  EXPECT_EQ(runtime_directory(own.file("nowhere"), ::geteuid()), "/tmp/everstep-" + number);
  EXPECT_EQ(runtime_directory(own.file("file"), ::geteuid()), "/tmp/everstep-" + number);
  EXPECT_EQ(runtime_directory(own.path().string(), 54321), "/tmp/everstep-54321");
}

}  // namespace
}  // namespace everstep::launcher
