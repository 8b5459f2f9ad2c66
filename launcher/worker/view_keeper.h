#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/tick.h"
#include "elastic/kv_store.h"
#include "elastic/view.h"

namespace everstep::launcher {

// Keeps a view of all keys below a prefix: by a watch, and by listing them when the watch may have missed something and
// every ten seconds besides.
class ViewKeeper {
 public:
  // `on_news` is called by a service thread when refresh() would find something; it must not block.
  ViewKeeper(elastic::KvStore& store, std::string prefix, const std::function<void()>& on_news);
  ViewKeeper(const ViewKeeper&) = delete;
  ViewKeeper& operator=(const ViewKeeper&) = delete;

  // Brings the view up to date, as far as the store answers. Tells whether it changed. kDataLoss: the store is another
  // one, or went back in time.
  Result<bool> refresh(Tick now);

  // Looks again at the next refresh, whatever the watch says.
  void distrust();

  const elastic::View& view() const { return view_; }

 private:
  Result<bool> list(Tick now);

  elastic::KvStore& store_;
  const std::string prefix_;
  elastic::View view_;  // of the caller's thread
  Tick listed_ = 0;
  Tick pause_until_ = 0;

  std::mutex mutex_;
  std::vector<elastic::WatchEvent> events_;
  bool has_gap_ = true;
  std::unique_ptr<elastic::Watch> watch_;  // last, so that it ends first
};

}  // namespace everstep::launcher
