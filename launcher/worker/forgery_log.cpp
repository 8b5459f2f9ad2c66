#include "launcher/worker/forgery_log.h"

#include "base/log_line.h"

namespace everstep::launcher {
namespace {

constexpr Tick kMinute = 60 * kTicksPerSecond;
constexpr int kMostLines = 20;  // a minute

}  // namespace

std::vector<std::string> ForgeryLog::look(const elastic::View& view, Tick now) {
  const std::vector<const elastic::KeyValue*> forged = view.forged();
  std::erase_if(told_, [&](const auto& one) { return !view.is_forged(one.first); });
  if (now - minute_ >= kMinute) {
    minute_ = now;
    lines_ = 0;
  }
  std::vector<std::string> lines;
  for (const elastic::KeyValue* item : forged) {
    if (lines_ == kMostLines) break;
    const auto told = told_.find(item->key);
    if (told != told_.end() && told->second.modified == item->modified && now - told->second.at < kMinute) continue;
    told_[item->key] = {item->modified, now};
    ++lines_;
    lines.push_back(LogLine("forged_record")
                        .add("key", item->key)
                        .add("reason", "it is not sealed with the job's secret, or was sealed for another key or job")
                        .add("hint", "nobody acts on it; find out who else may write to the job's etcd")
                        .text());
  }
  return lines;
}

}  // namespace everstep::launcher
