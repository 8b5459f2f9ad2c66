#include "elastic/etcd_call.h"

#include <gmock/gmock.h>

#include "elastic/etcd_history.h"

namespace everstep::elastic {
namespace {

using Kind = CallFailure::Kind;
using testing::HasSubstr;

constexpr int kUnavailable = 14;
constexpr int kDeadlineExceeded = 4;

struct Case {
  int code;
  const char* message;
  Kind kind;
  ErrorCode error;
};

// Words of etcd 3.4.23 and gRPC 1.51.
TEST(EtcdCall, AFailureIsClassedByWhatTheServerMayHaveDone) {
  const std::vector<Case> cases = {
      {kUnavailable, "failed to connect to all addresses; last error: UNKNOWN: Connection refused", Kind::kNotExecuted,
       ErrorCode::kUnavailable},
      {kUnavailable, "etcdserver: no leader", Kind::kNotExecuted, ErrorCode::kUnavailable},
      {8, "etcdserver: too many requests", Kind::kNotExecuted, ErrorCode::kUnavailable},
      {kUnavailable, "Socket closed", Kind::kUnknown, ErrorCode::kDeadlineExceeded},
      {kUnavailable, "etcdserver: request timed out", Kind::kUnknown, ErrorCode::kDeadlineExceeded},
      {kUnavailable, "etcdserver: leader changed", Kind::kUnknown, ErrorCode::kDeadlineExceeded},
      {kUnavailable, "words that nobody knows", Kind::kUnknown, ErrorCode::kDeadlineExceeded},
      {2, "Stream removed", Kind::kUnknown, ErrorCode::kDeadlineExceeded},
      {kDeadlineExceeded, "Deadline Exceeded", Kind::kUnknown, ErrorCode::kDeadlineExceeded},
      {5, "etcdserver: requested lease not found", Kind::kFinal, ErrorCode::kNotFound},
      {3, "etcdserver: request is too large", Kind::kFinal, ErrorCode::kInvalidArgument},
      {7, "etcdserver: permission denied", Kind::kFinal, ErrorCode::kInvalidArgument},
      {8, "trying to send message larger than max", Kind::kFinal, ErrorCode::kInvalidArgument},
      {8, "etcdserver: mvcc: database space exceeded", Kind::kFinal, ErrorCode::kUnavailable},
  };
  for (const Case& one : cases) {
    const CallFailure failure = explain(one.code, one.message, "http://127.0.0.1:1");
    EXPECT_EQ(failure.kind, one.kind) << one.message;
    EXPECT_EQ(failure.error.code, one.error) << one.message;
    EXPECT_THAT(failure.error.message, HasSubstr("http://127.0.0.1:1"));
  }
}

TEST(EtcdCall, OnlyWhatWasNotExecutedOrMayBeRepeatedIsTriedAgain) {
  const CallFailure refused = not_connected("http://a:1");
  const CallFailure broken = explain(kUnavailable, "Socket closed", "http://b:1");
  CallTries write(2, Repeat::kNever);
  EXPECT_FALSE(write.ends_after(refused));
  EXPECT_FALSE(write.is_round_over());
  EXPECT_TRUE(write.ends_after(broken));

  CallTries read(2, Repeat::kFreely);
  EXPECT_FALSE(read.ends_after(broken));
  EXPECT_FALSE(read.ends_after(refused));
  EXPECT_TRUE(read.is_round_over());
  EXPECT_EQ(read.worst(), broken.error) << "that one was refused does not tell what the other did";
  EXPECT_TRUE(read.ends_after(explain(3, "etcdserver: key is not provided", "http://b:1")));
}

TEST(EtcdHistory, AnotherClusterAndThePastAreDataLoss) {
  EtcdHistory history;
  EXPECT_TRUE(history.check_cluster(7, "http://a:1").ok());
  EXPECT_TRUE(history.check_cluster(7, "http://b:1").ok());
  EXPECT_EQ(history.check_cluster(8, "http://b:1").error().code, ErrorCode::kDataLoss);
  EXPECT_TRUE(history.check_revision(5, history.newest(), "http://a:1").ok());
  EXPECT_TRUE(history.check_revision(5, history.newest(), "http://a:1").ok());
  EXPECT_EQ(history.check_revision(4, history.newest(), "http://a:1").error().code, ErrorCode::kDataLoss);
  // An answer to an older question may come later.
  EXPECT_TRUE(history.check_revision(4, 3, "http://a:1").ok());
  EXPECT_EQ(history.newest(), 5);
}

}  // namespace
}  // namespace everstep::elastic
