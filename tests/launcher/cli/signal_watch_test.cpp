#include "launcher/cli/signal_watch.h"

#include <optional>

#include <gtest/gtest.h>

namespace everstep::launcher {
namespace {

TEST(SignalWatch, TurnsASignalIntoSomethingToRead) {
  const SignalWatch watch;
  EXPECT_EQ(watch.next(), std::nullopt);
  ::raise(SIGTERM);
  EXPECT_EQ(watch.next(), SIGTERM);
  EXPECT_EQ(watch.next(), std::nullopt);
}

TEST(SignalWatch, LeavesToTheOuterOneWhatTheInnerOneHasNotRead) {
  const SignalWatch outer;
  {
    const SignalWatch inner;
    ::raise(SIGINT);
    ::raise(SIGTERM);
    EXPECT_EQ(inner.next(), SIGINT);
  }
  ::raise(SIGHUP);  // nobody dies of it
  EXPECT_EQ(outer.next(), SIGHUP);
  EXPECT_EQ(outer.next(), SIGTERM);
}

TEST(SignalWatch, IsDeafenedByNothingThatTheOuterOneBlocked) {
  const SignalWatch outer;
  ::raise(SIGINT);
  const SignalWatch inner;
  EXPECT_EQ(inner.next(), SIGINT);
}

}  // namespace
}  // namespace everstep::launcher
