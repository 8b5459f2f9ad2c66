#include "trainer/socket/closing_streams.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace everstep::trainer {
namespace {

constexpr std::int64_t kHurriedLookMs = 5;

// Whether the other side's kernel has it all; nothing tells when.
bool has_arrived(const ByteStream& stream) {
  int on_its_way = 0;
  return ::ioctl(stream.descriptor(), SIOCOUTQ, &on_its_way) != 0 || on_its_way == 0;
}

// Whether the other side has ended, too. What it says is of no use to anybody. It is read some at a time, so that one
// that never ends holds nobody up. (MSG_TRUNC would spare the copy, but ThreadSanitizer takes it for a write.)
bool has_ended(const ByteStream& stream) {
  constexpr int kLooks = 16;
  std::array<std::byte, 64 << 10> unwanted;
  ssize_t count = 1;
  for (int i = 0; i < kLooks && count > 0; ++i) {
    count = ::recv(stream.descriptor(), unwanted.data(), unwanted.size(), MSG_DONTWAIT);
  }
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
}

}  // namespace

ClosingStreams::~ClosingStreams() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  news_.raise();
  if (thread_.joinable()) thread_.join();
}

void ClosingStreams::take(std::unique_ptr<ByteStream> stream) {
  if (!stream->encrypts()) return;  // it does not leave this host
  stream->end_writing();
  const std::lock_guard lock(mutex_);
  taken_.push_back({std::move(stream), Clock::now() + kTimeToClose});
  news_.raise();
  if (std::exchange(is_running_, true)) return;
  if (thread_.joinable()) thread_.join();  // it has said that it ends
  thread_ = std::thread([this] { run(); });
}

void ClosingStreams::run() {
  std::vector<Closing> streams;
  while (true) {
    bool hurries = false;
    {
      const std::lock_guard lock(mutex_);
      std::move(taken_.begin(), taken_.end(), std::back_inserter(streams));
      taken_.clear();
      hurries = is_over_;
      if (hurries) std::erase_if(streams, [](const Closing& closing) { return has_arrived(*closing.stream); });
      if (streams.empty()) {
        is_running_ = false;
        return;
      }
    }
    std::vector<pollfd> polled{{news_.descriptor(), POLLIN, 0}};
    auto next = Clock::time_point::max();
    for (const Closing& closing : streams) {
      polled.push_back({closing.stream->descriptor(), POLLIN, 0});
      next = std::min(next, closing.until);
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
    const auto pause = std::max<std::int64_t>(hurries ? std::min<std::int64_t>(left, kHurriedLookMs) : left, 0);
    ::poll(polled.data(), polled.size(), static_cast<int>(pause));
    news_.lower();
    std::erase_if(streams,
                  [](const Closing& closing) { return closing.until <= Clock::now() || has_ended(*closing.stream); });
  }
}

}  // namespace everstep::trainer
