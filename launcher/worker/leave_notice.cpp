#include "launcher/worker/leave_notice.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "base/text.h"
#include "launcher/cli/boot_clock.h"
#include "launcher/cli/files.h"
#include "launcher/worker/cloud_notice.h"

namespace everstep::launcher {
namespace {

constexpr std::size_t kLargestFile = 4096;
constexpr double kLongestSeconds = 7 * 24 * 3600;

std::optional<int> digits(std::string_view text, std::size_t at, std::size_t count) {
  const std::string_view part = text.substr(at, count);
  return part.find_first_not_of("0123456789") == std::string_view::npos ? parse_number<int>(part) : std::nullopt;
}

// "2026-11-16T20:05:00Z", with or without a fraction of the second, as seconds since 1970.
std::optional<double> parse_utc(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00";
  if (text.size() <= kForm.size() || text.back() != 'Z') return std::nullopt;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] != '0' && text[i] != kForm[i]) return std::nullopt;
  }
  const std::string_view fraction = text.substr(kForm.size(), text.size() - 1 - kForm.size());
  if (!fraction.empty() && (fraction.front() != '.' || !parse_number<double>("0" + std::string(fraction)))) {
    return std::nullopt;
  }
  const auto year = digits(text, 0, 4);
  const auto month = digits(text, 5, 2);
  const auto day = digits(text, 8, 2);
  const auto hour = digits(text, 11, 2);
  const auto minute = digits(text, 14, 2);
  const auto second = digits(text, 17, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  const std::chrono::sys_days midnight = date;
  const auto time =
      midnight + std::chrono::hours(*hour) + std::chrono::minutes(*minute) + std::chrono::seconds(*second);
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

// A file that appears. Its text, if there is any, says when.
class FileNotice final : public NoticeSource {
 public:
  explicit FileNotice(std::string path) : path_(std::move(path)) {}

  Result<std::optional<LeaveNotice>> look() override {
    const auto text = read_file(path_, kLargestFile);
    if (!text && text.error().code == ErrorCode::kNotFound) {
      was_empty_ = false;
      return std::optional<LeaveNotice>();
    }
    if (!text) return text.error();
    std::string_view word = *text;
    word = trimmed(word.substr(0, word.find('\n')));
    // Whoever makes the file may be about to write into it.
    if (word.empty() && !std::exchange(was_empty_, true)) return std::optional<LeaveNotice>();
    return std::optional(LeaveNotice{"notice in " + path_, notice_time_ms(word, wall_clock_seconds()).value_or(0)});
  }

 private:
  std::string path_;
  bool was_empty_ = false;
};

}  // namespace

double wall_clock_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::optional<std::int64_t> notice_time_ms(std::string_view text, double now) {
  const bool is_number = !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
  std::optional<double> seconds = is_number ? parse_number<double>(text) : parse_utc(text);
  if (!seconds) return std::nullopt;
  if (!is_number) *seconds -= now;
  return std::max<std::int64_t>(1, std::llround(std::min(*seconds, kLongestSeconds) * 1000));
}

Result<std::unique_ptr<NoticeSource>> make_notice_source(std::string_view notice, const std::string& url) {
  constexpr std::string_view kFile = "file:";
  if (!url.empty()) EVERSTEP_TRY(check_http_base(url));
  if (notice.size() > kFile.size() && notice.starts_with(kFile)) {
    return std::unique_ptr<NoticeSource>(std::make_unique<FileNotice>(std::string(notice.substr(kFile.size()))));
  }
  if (notice == "aws") return make_aws_notice(url);
  if (notice == "gcp") return make_gcp_notice(url);
  return invalid_argument("'" + std::string(notice) + "' is no place where a notice could be found",
                          "write file:PATH, aws or gcp");
}

class NoticeWatch::Loop {
 public:
  Loop(std::unique_ptr<NoticeSource> source, NoticeCallbacks callbacks, Tick every)
      : source_(std::move(source)), callbacks_(std::move(callbacks)), every_(every), thread_([this] { run(); }) {}
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop() {
    closing_.ring();
    thread_.join();
  }

 private:
  void run() {
    bool in_trouble = false;
    Tick next = boot_now();
    while (!closing_.wait_until(next)) {
      next = boot_now() + every_;
      const auto found = source_->look();
      if (!found && !in_trouble) callbacks_.on_trouble(found.error());
      in_trouble = !found;
      if (found && found->has_value()) {
        callbacks_.on_notice(**found);
        return;
      }
    }
  }

  std::unique_ptr<NoticeSource> source_;
  const NoticeCallbacks callbacks_;
  const Tick every_;
  BootAlarm closing_;
  std::thread thread_;
};

NoticeWatch::NoticeWatch(std::unique_ptr<NoticeSource> source, NoticeCallbacks callbacks, Tick every)
    : loop_(std::make_unique<Loop>(std::move(source), std::move(callbacks), every)) {}

NoticeWatch::~NoticeWatch() = default;

}  // namespace everstep::launcher
