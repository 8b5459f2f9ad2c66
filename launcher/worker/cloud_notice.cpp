#include "launcher/worker/cloud_notice.h"

#include <utility>

#include "base/text.h"
#include "storage/json/json.h"

namespace everstep::launcher {
namespace {

// Link-local, and the same in both clouds; by number, since looking a name up knows no limit of time.
constexpr const char* kMetadataServer = "http://169.254.169.254";

using Found = Result<std::optional<LeaveNotice>>;

Error unexpected(const HttpRequest& request, const HttpReply& reply) {
  return {ErrorCode::kUnavailable,
          request.base + request.path + " answered with status " + std::to_string(reply.status),
          "is this machine in that cloud?"};
}

std::string text_member(const storage::Json& json, std::string_view name) {
  const storage::Json* member = json.find(name);
  const auto* text = member == nullptr ? nullptr : std::get_if<std::string>(&member->value());
  return text == nullptr ? "" : *text;
}

// IMDSv2: a token for a while, then the question. There is an answer from two minutes before the end on.
class AwsNotice final : public NoticeSource {
 public:
  explicit AwsNotice(std::string base) : base_(std::move(base)) {}

  Found look() override {
    if (token_.empty()) EVERSTEP_TRY(take_token());
    const HttpRequest request{.base = base_,
                              .path = "/latest/meta-data/spot/instance-action",
                              .headers = {{"X-aws-ec2-metadata-token", token_}}};
    const auto reply = fetch_http(request);
    if (!reply) return reply.error();
    if (reply->status == 404) return std::optional<LeaveNotice>();
    if (reply->status == 200) return std::optional(notice_of(reply->body));
    token_.clear();  // 401: it has run out
    return unexpected(request, *reply);
  }

 private:
  Status take_token() {
    const HttpRequest request{.method = "PUT",
                              .base = base_,
                              .path = "/latest/api/token",
                              .headers = {{"X-aws-ec2-metadata-token-ttl-seconds", "21600"}}};
    auto reply = fetch_http(request);
    if (!reply) return reply.error();
    const bool is_token = reply->body.find_first_of("\r\n") == std::string::npos && !reply->body.empty();
    if (reply->status != 200 || !is_token) return unexpected(request, *reply);
    token_ = std::move(reply->body);
    return {};
  }

  // Whatever it says, the machine goes: terminate, stop or hibernate.
  static LeaveNotice notice_of(const std::string& body) {
    constexpr std::int64_t kUsualMs = 120'000;
    const auto json = storage::parse_json(body);
    if (!json) return {"AWS spot notice", kUsualMs};
    const std::string action = text_member(*json, "action");
    const auto time = notice_time_ms(text_member(*json, "time"), wall_clock_seconds());
    return {"AWS spot notice" + (action.empty() ? "" : ": " + action), time.value_or(kUsualMs)};
  }

  std::string base_;
  std::string token_;
};

// TRUE from 30 seconds before the end on.
class GcpNotice final : public NoticeSource {
 public:
  explicit GcpNotice(std::string base) : base_(std::move(base)) {}

  Found look() override {
    const HttpRequest request{
        .base = base_, .path = "/computeMetadata/v1/instance/preempted", .headers = {{"Metadata-Flavor", "Google"}}};
    const auto reply = fetch_http(request);
    if (!reply) return reply.error();
    if (reply->status != 200) return unexpected(request, *reply);
    const std::string_view body = reply->body;
    if (trimmed(body.substr(0, body.find('\n'))) != "TRUE") return std::optional<LeaveNotice>();
    return std::optional(LeaveNotice{"GCP preemption notice", 30'000});
  }

 private:
  std::string base_;
};

std::string base_of(const std::string& url) { return url.empty() ? kMetadataServer : url; }

}  // namespace

std::unique_ptr<NoticeSource> make_aws_notice(const std::string& url) {
  return std::make_unique<AwsNotice>(base_of(url));
}

std::unique_ptr<NoticeSource> make_gcp_notice(const std::string& url) {
  return std::make_unique<GcpNotice>(base_of(url));
}

}  // namespace everstep::launcher
