#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/tick.h"

namespace everstep::launcher {

// This worker must leave. Becomes elastic::LeaveAsked.
struct LeaveNotice {
  std::string reason;
  std::int64_t within_ms = 0;  // 0: no hurry

  bool operator==(const LeaveNotice&) const = default;
};

// Where such a notice would be found.
class NoticeSource {
 public:
  virtual ~NoticeSource() = default;

  // Nothing: there is none now. An error: nobody knows (ask again). Returns within a few seconds.
  virtual Result<std::optional<LeaveNotice>> look() = 0;
};

// For the value of --notice: "file:PATH", "aws" or "gcp", and of --notice-url, which stands in for the address of the
// cloud's metadata server; empty: that address. kInvalidArgument for anything else.
Result<std::unique_ptr<NoticeSource>> make_notice_source(std::string_view notice, const std::string& url);

struct NoticeCallbacks {
  std::function<void(const LeaveNotice&)> on_notice;  // once
  std::function<void(const Error&)> on_trouble;       // when looking begins to fail; again only after it worked
};

// Looks for a notice again and again on a thread of its own, until there is one. Neither callback may block.
class NoticeWatch {
 public:
  NoticeWatch(std::unique_ptr<NoticeSource> source, NoticeCallbacks callbacks, Tick every = kTicksPerSecond);
  NoticeWatch(const NoticeWatch&) = delete;
  NoticeWatch& operator=(const NoticeWatch&) = delete;
  // Waits for the look at hand.
  ~NoticeWatch();

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

// How long until leaving, from the text of a notice: whole or decimal seconds ("90", "12.5") or an ISO 8601 time in UTC
// ("2026-11-16T20:05:00Z"), with `now` in seconds since 1970. At least 1 ms; nothing for any other text.
std::optional<std::int64_t> notice_time_ms(std::string_view text, double now);

}  // namespace everstep::launcher
