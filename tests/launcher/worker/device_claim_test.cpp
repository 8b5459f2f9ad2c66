#include "launcher/worker/device_claim.h"

#include <csignal>
#include <optional>

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/send_signal.h"
#include "tests/temporary_directory.h"

namespace everstep::launcher {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class Claims : public testing::Test {
 protected:
  static std::vector<trainer::DeviceFacts> devices(const std::vector<std::string>& ids) {
    std::vector<trainer::DeviceFacts> all;
    for (const std::string& id : ids) all.push_back({"GPU", 1, {}, id});
    return all;
  }

  std::string directory() const { return directory_.file("runtime"); }

  Result<DeviceClaim> take(const DeviceName& name) const { return take(name, two_); }
  Result<DeviceClaim> take(const DeviceName& name, const std::vector<trainer::DeviceFacts>& of,
                           std::chrono::milliseconds patience = 0ms) const {
    return DeviceClaim::take(name, of, directory(), patience);
  }

  TemporaryDirectory directory_;
  const std::vector<trainer::DeviceFacts> two_ = devices({"a", "b"});
};

TEST_F(Claims, GiveEachWorkerADeviceOfItsOwn) {
  const auto first = take({"cuda"});
  const auto second = take({"cuda"});
  EXPECT_EQ(first->number(), 0);
  EXPECT_EQ(second->number(), 1);
  EXPECT_FALSE(second->is_shared());
  const auto third = take({"cuda"});
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().line(),
            "each device of the kind cuda has a worker already, and there are 2 (hint: --device=cuda:0 takes the first "
            "one all the same)");
  EXPECT_EQ(take({"xpu"})->number(), 0) << "another kind has others";
}

TEST_F(Claims, EndWithTheirObjects) {
  auto first = std::optional(take({"cuda"}));
  const auto second = take({"cuda"});
  first.reset();
  EXPECT_EQ(take({"cuda"})->number(), 0);
}

TEST_F(Claims, EndWithAProcessThatIsKilled) {
  int told[2];
  ASSERT_EQ(::pipe(told), 0);
  const pid_t other = ::fork();
  if (other == 0) {
    const auto claims = {take({"cuda"}), take({"cuda"})};
    static_cast<void>(::write(told[1], "", 1));
    while (claims.size() == 2) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(told[0], &byte, 1), 1);
  EXPECT_FALSE(take({"cuda"}));
  send_signal(other, SIGKILL);
  EXPECT_EQ(take({"cuda"}, two_, 60s)->number(), 0) << "waits for one that ends";
  ::waitpid(other, nullptr, 0);
  ::close(told[0]);
  ::close(told[1]);
}

TEST_F(Claims, OfACertainDeviceHoldWhoeverHasIt) {
  const auto first = take({"cuda", 0});
  EXPECT_FALSE(first->is_shared());
  auto twin = std::optional(take({"cuda", 0}));
  EXPECT_EQ((*twin)->number(), 0);
  EXPECT_TRUE((*twin)->is_shared());
  const auto other = take({"cuda"});
  EXPECT_EQ(other->number(), 1);
  EXPECT_TRUE(take({"cuda", 1})->is_shared());
}

// The first one goes, and its twin still computes there.
TEST_F(Claims, OfTwoOnOneDeviceEndWithTheLast) {
  auto first = std::optional(take({"cuda", 0}));
  auto twin = std::optional(take({"cuda", 0}));
  const auto other = take({"cuda", 1});
  first.reset();
  EXPECT_FALSE(take({"cuda"}));
  twin.reset();
  EXPECT_EQ(take({"cuda"})->number(), 0);
}

// CUDA_VISIBLE_DEVICES gives one GPU several numbers.
TEST_F(Claims, KnowADeviceByWhatItIsAndNotByItsNumber) {
  const auto first = take({"cuda"}, devices({"b"}));
  EXPECT_EQ(first->number(), 0);
  const auto second = take({"cuda"}, devices({"b", "a"}));
  EXPECT_EQ(second->number(), 1);
  EXPECT_FALSE(take({"cuda"}, devices({"a"})));
}

TEST_F(Claims, GoByNumberIfNothingElseIsKnown) {
  const auto first = take({"xpu"}, devices({"", ""}));
  EXPECT_EQ(take({"xpu"}, devices({"", ""}))->number(), 1);
}

TEST_F(Claims, AreNotWrittenWhereOthersWrite) {
  ASSERT_EQ(::mkdir(directory().c_str(), 0700), 0);
  ASSERT_EQ(::chmod(directory().c_str(), 0777), 0);
  EXPECT_THAT(take({"cuda"}).error().message, HasSubstr("other users may enter it"));
  EXPECT_EQ(take({"cuda", 1})->number(), 1) << "nobody has to be asked";
}

}  // namespace
}  // namespace everstep::launcher
