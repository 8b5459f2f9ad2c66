#include "launcher/cli/output.h"

#include <cerrno>
#include <csignal>
#include <ostream>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace everstep::launcher {
namespace {

TEST(DescriptorBuffer, WritesAllOfIt) {
  int ends[2] = {};
  ASSERT_EQ(pipe(ends), 0);
  DescriptorBuffer buffer(ends[1]);
  std::ostream out(&buffer);
  out << "one" << 2 << std::endl << "three";
  out.flush();
  close(ends[1]);
  std::string text(100, '\0');
  text.resize(static_cast<std::size_t>(read(ends[0], text.data(), text.size())));
  close(ends[0]);
  EXPECT_EQ(text, "one2\nthree");
  EXPECT_EQ(buffer.error(), 0);
}

TEST(DescriptorBuffer, RemembersWhyItFailed) {
  const int full = open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  DescriptorBuffer buffer(full);
  std::ostream out(&buffer);
  out << std::string(1 << 20, 'x');
  EXPECT_FALSE(out.good());
  EXPECT_EQ(buffer.error(), ENOSPC);
  close(full);
}

TEST(DescriptorBuffer, TellsAClosedPipeFromOtherFailures) {
  signal(SIGPIPE, SIG_IGN);
  int ends[2] = {};
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  DescriptorBuffer buffer(ends[1]);
  std::ostream out(&buffer);
  out << "nobody reads this";
  out.flush();
  EXPECT_EQ(buffer.error(), EPIPE);
  close(ends[1]);
  signal(SIGPIPE, SIG_DFL);
}

}  // namespace
}  // namespace everstep::launcher
