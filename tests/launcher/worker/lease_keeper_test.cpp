#include "launcher/worker/lease_keeper.h"

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/worker/mailbox.h"
#include "tests/launcher/worker/scripted_store.h"
#include "tests/send_signal.h"

namespace everstep::launcher {
namespace {

using namespace std::chrono_literals;
using State = LeaseNews::State;

constexpr elastic::LeaseId kLease = 42;

const Error kUnreachable{ErrorCode::kUnavailable, "no server answers", ""};
const Error kUnknownLease{ErrorCode::kNotFound, "no such lease", ""};

class LeaseKeeping : public testing::Test {
 protected:
  LeaseKeeperOptions options(Tick ttl) {
    LeaseKeeperOptions options;
    options.lease = kLease;
    options.ttl = ttl;
    options.granted = boot_now();
    options.may_renew = [this] { return may_renew.load(); };
    options.on_news = [this](const LeaseNews& news) { mailbox.put(news); };
    return options;
  }

  // The next news of that state.
  LeaseNews await(State state) {
    while (true) {
      const auto news = mailbox.take(20s);
      EXPECT_TRUE(news) << "no news for long";
      if (!news || news->state == state) return news.value_or(LeaseNews{});
    }
  }

  std::atomic<bool> may_renew = true;
  Mailbox<LeaseNews> mailbox;
};

TEST_F(LeaseKeeping, RenewsEveryThirdOfTheTtl) {
  ScriptedStore store([](elastic::LeaseId lease, std::chrono::milliseconds deadline) {
    EXPECT_EQ(lease, kLease);
    EXPECT_LE(deadline, 500ms);
    return 60s;
  });
  const Tick start = boot_now();
  const LeaseKeeper keeper(store, options(900 * kMillisecond));
  EXPECT_GE(await(State::kHeld).last_renewed, start + 300 * kMillisecond);
  EXPECT_GE(await(State::kHeld).last_renewed, start + 600 * kMillisecond);
}

TEST_F(LeaseKeeping, CountsFromBeforeTheRequest) {
  ScriptedStore store([](elastic::LeaseId, std::chrono::milliseconds) {
    std::this_thread::sleep_for(200ms);
    return 60s;
  });
  const LeaseKeeper keeper(store, options(3 * kMillisecond * 100));
  const LeaseNews news = await(State::kHeld);
  EXPECT_GE(boot_now() - news.last_renewed, 200 * kMillisecond);
}

TEST_F(LeaseKeeping, BelievesAStoreThatGrantsLess) {
  std::atomic<int> calls = 0;
  ScriptedStore store([&](elastic::LeaseId, std::chrono::milliseconds) -> Result<std::chrono::seconds> {
    if (++calls == 1) return 1s;
    return kUnreachable;
  });
  const LeaseKeeper keeper(store, options(3 * kTicksPerSecond));
  const Tick renewed = await(State::kHeld).last_renewed;
  EXPECT_LT(await(State::kOverdue).last_renewed, boot_now());
  EXPECT_LT(boot_now(), renewed + 3 * kTicksPerSecond);
}

TEST_F(LeaseKeeping, TriesAgainSoonAndLeavesNoLeaseToAShortTrouble) {
  std::atomic<int> calls = 0;
  ScriptedStore store([&](elastic::LeaseId, std::chrono::milliseconds) -> Result<std::chrono::seconds> {
    if (++calls <= 3) return kUnreachable;
    return 60s;
  });
  const Tick start = boot_now();
  const LeaseKeeper keeper(store, options(6 * kTicksPerSecond));
  const LeaseNews trouble = await(State::kHeld);
  EXPECT_EQ(trouble.error, kUnreachable);
  LeaseNews news = trouble;
  while (news.error) news = await(State::kHeld);
  EXPECT_EQ(calls, 4);
  EXPECT_LT(news.last_renewed, start + 4 * kTicksPerSecond);
}

TEST_F(LeaseKeeping, IsOverdueAfterTheTtlAndComesBack) {
  std::atomic<bool> reachable = false;
  ScriptedStore store([&](elastic::LeaseId, std::chrono::milliseconds) -> Result<std::chrono::seconds> {
    if (!reachable) return kUnreachable;
    return 60s;
  });
  const LeaseKeeper keeper(store, options(300 * kMillisecond));
  const LeaseNews overdue = await(State::kOverdue);
  EXPECT_GE(boot_now(), overdue.last_renewed + 300 * kMillisecond);
  EXPECT_FALSE(overdue.withheld);
  reachable = true;
  EXPECT_GT(await(State::kHeld).last_renewed, overdue.last_renewed);
}

TEST_F(LeaseKeeping, WithholdsWhileThereIsNoProgress) {
  std::atomic<int> calls = 0;
  ScriptedStore store([&](elastic::LeaseId, std::chrono::milliseconds) {
    ++calls;
    return 60s;
  });
  may_renew = false;
  const LeaseKeeper keeper(store, options(300 * kMillisecond));
  EXPECT_TRUE(await(State::kHeld).withheld);
  while (!await(State::kOverdue).withheld) {
  }
  EXPECT_EQ(calls, 0) << "the lease of a hung worker was renewed";
  may_renew = true;
  EXPECT_FALSE(await(State::kHeld).withheld);
}

TEST_F(LeaseKeeping, SaysThatTheLeaseIsGoneAndNothingAfterwards) {
  std::atomic<int> calls = 0;
  ScriptedStore store([&](elastic::LeaseId, std::chrono::milliseconds) -> Result<std::chrono::seconds> {
    ++calls;
    return kUnknownLease;
  });
  const LeaseKeeper keeper(store, options(30 * kMillisecond));
  EXPECT_EQ(await(State::kGone).error, kUnknownLease);
  EXPECT_FALSE(mailbox.take(200ms));
  EXPECT_EQ(calls, 1);
}

TEST_F(LeaseKeeping, EndsAtOnce) {
  ScriptedStore store([](elastic::LeaseId, std::chrono::milliseconds) { return 60s; });
  const Tick start = boot_now();
  { const LeaseKeeper keeper(store, options(3600 * kTicksPerSecond)); }
  EXPECT_LT(boot_now() - start, 5 * kTicksPerSecond);
}

// Says what it hears of a lease that the store would renew for ever: 'h', 'o' or 'g' per change.
[[noreturn]] void keep_a_lease_in_this_process(Tick ttl, int tell) {
  ScriptedStore store([](elastic::LeaseId, std::chrono::milliseconds) { return 60s; });
  std::optional<State> last;
  LeaseKeeperOptions options;
  options.ttl = ttl;
  options.granted = boot_now();
  options.may_renew = [] { return true; };
  options.on_news = [&](const LeaseNews& news) {
    if (last == news.state) return;
    last = news.state;
    const char letter = "hog"[static_cast<std::size_t>(news.state)];
    if (::write(tell, &letter, 1) != 1) ::_exit(1);
  };
  const LeaseKeeper keeper(store, options);
  while (true) ::pause();
}

TEST(StoppedProcess, NoticesThatItsTimeIsOverBeforeItAsks) {
  constexpr Tick kTtl = 2 * kTicksPerSecond;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) keep_a_lease_in_this_process(kTtl, ends[1]);
  char letter = 0;
  ASSERT_EQ(::read(ends[0], &letter, 1), 1);
  EXPECT_EQ(letter, 'h');
  send_signal(child, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::nanoseconds(kTtl + kTtl / 4));
  send_signal(child, SIGCONT);
  ASSERT_EQ(::read(ends[0], &letter, 1), 1);
  EXPECT_EQ(letter, 'o');
  ASSERT_EQ(::read(ends[0], &letter, 1), 1);
  EXPECT_EQ(letter, 'h');
  send_signal(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace everstep::launcher
