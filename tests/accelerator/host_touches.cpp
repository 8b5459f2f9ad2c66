// The part of Accelerator that runs in a signal handler: it allocates no memory. The mutex may be taken, because no
// thread touches memory by the host's address while it holds it.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include "tests/accelerator/accelerator.h"

namespace everstep::accelerator {

bool Accelerator::on_fault(const void* address, bool writes) {
  const bool pinned = pinned_.holds(address);
  if (!pinned && !device_.holds(address)) return false;
  const Arena& arena = pinned ? pinned_ : device_;
  const std::lock_guard lock(mutex_);
  Touch touch{arena.offset_of(address), writes, pinned, {}};
  const PinnedGuard::InFlight* const disturbed = pinned ? pinned_guard_.disturbed_by(touch.offset, writes) : nullptr;
  if (disturbed != nullptr) {
    std::snprintf(touch.what.data(), touch.what.size(), " while '%s' on stream %lld %s it", disturbed->what.c_str(),
                  static_cast<long long>(disturbed->when.stream), disturbed->writes ? "writes" : "reads");
  }
  if (!pinned || disturbed != nullptr) {
    if (options_.on_mistake == OnMistake::kEndProcess) end_process(touch);
    if (touched_ < touches_.size()) touches_[touched_] = touch;
    ++touched_;
  }
  arena.set_rights(touch.offset, 1, Rights::kAll);
  return true;
}

void Accelerator::end_process(const Touch& touch) {
  std::array<char, 256> line{};
  const int size =
      std::snprintf(line.data(), line.size(), "fake accelerator: the host %s %s memory%s\n",
                    touch.writes ? "writes" : "reads", touch.pinned ? "pinned" : "device", touch.what.data());
  (void)!::write(STDERR_FILENO, line.data(), static_cast<std::size_t>(size));
  std::abort();
}

std::string Accelerator::text_of(const Touch& touch) {
  std::string text = std::string("the host ") + (touch.writes ? "writes" : "reads");
  if (!touch.pinned) return text + " device memory, at byte " + std::to_string(touch.offset);
  return text + " pinned memory" + touch.what.data();
}

std::vector<Mistake> Accelerator::mistakes() const {
  const std::lock_guard lock(mutex_);
  std::vector<Mistake> all = mistakes_;
  for (std::size_t i = 0; i < touched_ && i < touches_.size(); ++i) {
    all.push_back({MistakeKind::kHostTouch, text_of(touches_[i])});
  }
  return all;
}

std::vector<Mistake> Accelerator::take_mistakes() {
  std::vector<Mistake> all = mistakes();
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < touched_ && i < touches_.size(); ++i) {
    if (!touches_[i].pinned) device_.set_rights(touches_[i].offset, 1, Rights::kNone);
  }
  mistakes_.clear();
  touched_ = 0;
  return all;
}

}  // namespace everstep::accelerator
