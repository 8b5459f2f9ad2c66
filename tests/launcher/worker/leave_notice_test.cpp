#include "launcher/worker/leave_notice.h"

#include <atomic>
#include <filesystem>
#include <mutex>

#include <gtest/gtest.h>

#include "launcher/cli/files.h"
#include "launcher/worker/mailbox.h"
#include "tests/launcher/http/metadata_server.h"
#include "tests/temporary_directory.h"

namespace everstep::launcher {
namespace {

using namespace std::chrono_literals;

constexpr double kNow = 1'800'000'000;  // 2027-01-15T08:00:00Z

std::unique_ptr<NoticeSource> source(std::string_view notice, const std::string& url = "") {
  auto made = make_notice_source(notice, url);
  EXPECT_TRUE(made) << notice;
  return std::move(made).value();
}

std::optional<LeaveNotice> found(NoticeSource& source) {
  const auto notice = source.look();
  EXPECT_TRUE(notice) << notice.error();
  return notice ? *notice : std::nullopt;
}

TEST(NoticeTime, IsSecondsOrATime) {
  EXPECT_EQ(notice_time_ms("90", kNow), 90'000);
  EXPECT_EQ(notice_time_ms("12.5", kNow), 12'500);
  EXPECT_EQ(notice_time_ms("2027-01-15T08:02:00Z", kNow), 120'000);
  EXPECT_EQ(notice_time_ms("2027-01-15T08:00:30.750Z", kNow), 30'000);
}

TEST(NoticeTime, ThatIsOverIsNotNoHurry) {
  EXPECT_EQ(notice_time_ms("0", kNow), 1);
  EXPECT_EQ(notice_time_ms("2026-01-15T08:02:00Z", kNow), 1);
}

TEST(NoticeTime, IsNothingElse) {
  for (const char* text : {"", "soon", "-5", "1e3", "1.2.3", "nan", "2027-01-15", "2027-13-15T08:02:00Z",
                           "2027-02-30T08:02:00Z", "2027-01-15T25:02:00Z", "2027-01-15T08:02:00", "2027-01-15T08:02Z",
                           "2027-01-15T08:02:00xZ", "2027-01-15 08:02:00Z", "2027-01-1-T08:02:00Z"}) {
    EXPECT_EQ(notice_time_ms(text, kNow), std::nullopt) << text;
  }
}

TEST(NoticeSource, OfAnUnknownKindIsRefused) {
  for (const char* text : {"", "file:", "azure", "AWS", "file"}) {
    const auto made = make_notice_source(text, "");
    ASSERT_FALSE(made) << text;
    EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(made.error().hint, "write file:PATH, aws or gcp");
  }
  EXPECT_FALSE(make_notice_source("aws", "localhost:80"));
}

TEST(FileNotice, IsThereOnceTheFileIs) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("leave");
  const auto file = source("file:" + path);
  EXPECT_EQ(found(*file), std::nullopt);
  ASSERT_TRUE(write_file(path, "45\n"));
  EXPECT_EQ(found(*file), (LeaveNotice{"notice in " + path, 45'000}));
}

TEST(FileNotice, WithoutATimeIsNoHurryAtTheSecondLook) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("leave");
  const auto file = source("file:" + path);
  ASSERT_TRUE(write_file(path, ""));
  EXPECT_EQ(found(*file), std::nullopt);
  EXPECT_EQ(found(*file), (LeaveNotice{"notice in " + path, 0}));
  ASSERT_TRUE(write_file(path, "please go"));
  EXPECT_EQ(found(*file), (LeaveNotice{"notice in " + path, 0}));
}

TEST(FileNotice, ThatCannotBeReadIsAnError) {
  const TemporaryDirectory directory;
  EXPECT_FALSE(source("file:" + directory.path().string())->look());
}

TEST(AwsNotice, IsReadWithAToken) {
  MetadataServer server;
  const auto aws = source("aws", server.url());
  EXPECT_EQ(found(*aws), std::nullopt);
  server.set_action(R"({"action": "terminate", "time": "2099-01-01T00:00:00Z"})");
  const auto notice = found(*aws);
  ASSERT_TRUE(notice);
  EXPECT_EQ(notice->reason, "AWS spot notice: terminate");
  EXPECT_EQ(notice->within_ms, 7 * 24 * 3600 * 1000);
  EXPECT_EQ(server.tokens_given(), 1);
}

TEST(AwsNotice, ThatIsOverIsUrgent) {
  MetadataServer server;
  server.set_action(R"({"action": "stop", "time": "2019-01-01T00:00:00Z"})");
  EXPECT_EQ(found(*source("aws", server.url())), (LeaveNotice{"AWS spot notice: stop", 1}));
}

TEST(AwsNotice, CountsEvenIfItMakesNoSense) {
  MetadataServer server;
  for (const char* text : {"", "terminate", "{}", R"({"action": 7, "time": null})", "[[[["}) {
    server.set_action(text);
    EXPECT_EQ(found(*source("aws", server.url())), (LeaveNotice{"AWS spot notice", 120'000})) << text;
  }
}

TEST(AwsNotice, TakesANewTokenWhenTheOldOneRanOut) {
  MetadataServer server;
  const auto aws = source("aws", server.url());
  EXPECT_EQ(found(*aws), std::nullopt);
  server.expire_tokens();
  EXPECT_FALSE(aws->look());
  EXPECT_EQ(found(*aws), std::nullopt);
  EXPECT_EQ(server.tokens_given(), 2);
}

TEST(GcpNotice, IsThereOnceTheMachineIsPreempted) {
  MetadataServer server;
  const auto gcp = source("gcp", server.url());
  EXPECT_EQ(found(*gcp), std::nullopt);
  server.set_preempted(true);
  EXPECT_EQ(found(*gcp), (LeaveNotice{"GCP preemption notice", 30'000}));
}

TEST(CloudNotice, OfNoServerIsAnError) {
  std::string url;
  {
    MetadataServer server;
    url = server.url();
  }
  EXPECT_FALSE(source("aws", url)->look());
  EXPECT_FALSE(source("gcp", url)->look());
}

TEST(NoticeWatch, TellsOnce) {
  MetadataServer server;
  Mailbox<LeaveNotice> notices;
  std::atomic<int> troubles = 0;
  const NoticeWatch watch(source("gcp", server.url()),
                          {[&](const LeaveNotice& notice) { notices.put(notice); }, [&](const Error&) { ++troubles; }},
                          kTicksPerSecond / 100);
  EXPECT_FALSE(notices.take(100ms));
  server.set_preempted(true);
  EXPECT_TRUE(notices.take(20s));
  EXPECT_FALSE(notices.take(100ms));
  EXPECT_EQ(troubles, 0);
}

// Fails until told otherwise.
class TroubledSource final : public NoticeSource {
 public:
  explicit TroubledSource(const std::atomic<int>& looks_that_fail, std::atomic<int>& looks)
      : looks_that_fail_(looks_that_fail), looks_(looks) {}

  Result<std::optional<LeaveNotice>> look() override {
    const int look = ++looks_;
    if (look <= looks_that_fail_ || look == looks_that_fail_ + 2)
      return Error{ErrorCode::kUnavailable, "no answer", ""};
    return look < looks_that_fail_ + 4 ? std::nullopt : std::optional(LeaveNotice{"go", 5});
  }

 private:
  const std::atomic<int>& looks_that_fail_;
  std::atomic<int>& looks_;
};

TEST(NoticeWatch, TellsOfTroubleOnceEachTimeItBegins) {
  const std::atomic<int> looks_that_fail = 5;
  std::atomic<int> looks = 0;
  std::atomic<int> troubles = 0;
  Mailbox<LeaveNotice> notices;
  const NoticeWatch watch(std::make_unique<TroubledSource>(looks_that_fail, looks),
                          {[&](const LeaveNotice& notice) { notices.put(notice); }, [&](const Error&) { ++troubles; }},
                          kTicksPerSecond / 1000);
  EXPECT_EQ(notices.take(20s), (LeaveNotice{"go", 5}));
  EXPECT_EQ(troubles, 2);
}

TEST(NoticeWatch, EndsAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  { const NoticeWatch watch(source("file:/no/such/file"), {}, 3600 * kTicksPerSecond); }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

}  // namespace
}  // namespace everstep::launcher
