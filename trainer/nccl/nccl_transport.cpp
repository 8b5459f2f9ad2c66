#include "trainer/nccl/nccl_transport.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "trainer/nccl/communicator_ending.h"
#include "trainer/nccl/nccl_link.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;

constexpr auto kPollInterval = 50us;      // of a caller that waits
constexpr auto kServiceInterval = 200us;  // while the caller computes
constexpr int kOldestNccl = 23000;

// What the host transport carries for a payload that goes by NCCL: the payload's header, and the id of its link.
constexpr std::size_t kNoticeBytes = kFrameHeaderBytes + kNcclUniqueIdBytes;

Buffer encode_notice(const FrameHeader& header, const NcclUniqueId& id) {
  const FrameBytes bytes = encode_frame(header);
  Buffer notice = allocate_scratch(kNoticeBytes);
  std::copy(bytes.begin(), bytes.end(), notice.data);
  std::copy(id.begin(), id.end(), notice.data + kFrameHeaderBytes);
  return notice;
}

FrameHeader notice_header(FrameHeader header) {
  header.length = kNoticeBytes;
  return header;
}

bool goes_by_host(Channel channel) { return channel == Channel::kRecords; }

struct Receive {
  int from = 0;
  Channel channel = Channel::kTensors;
  FrameHeader expected;
  Buffer into;
  Buffer notice;  // empty for frames that go by host as a whole
  ReceiveId host_id = 0;
  std::optional<FrameHeader> header;      // once it came and was checked
  std::optional<std::uint64_t> transfer;  // on the link; none: no payload to wait for
};

// Payloads that a worker sends to itself: copied once both sides are known.
struct Loop {
  std::deque<Buffer> sent;
  std::deque<Buffer> wanted;
};

class NcclTransport final : public Transport {
 public:
  NcclTransport(NcclApi api, std::unique_ptr<Transport> host, const NcclTransportOptions& options)
      : api_(std::move(api)), host_(std::move(host)), options_(options), service_([this] { serve(); }) {}

  ~NcclTransport() override {
    stop_service();
    if (!closed_) fail({ErrorCode::kCancelled, "the transport was thrown away", {}});
  }

  NcclTransport(const NcclTransport&) = delete;
  NcclTransport& operator=(const NcclTransport&) = delete;

  int worker() const override { return host_->worker(); }
  int workers() const override { return host_->workers(); }

  void send(int to, Channel channel, const FrameHeader& header, Buffer payload) override {
    EVERSTEP_CHECK(header.length == payload.size, "the header's length is not the payload's size");
    const std::lock_guard lock(mutex_);
    if (error_) return;
    if (goes_by_host(channel)) return host_->send(to, channel, header, std::move(payload));
    NcclUniqueId id{};
    if (payload.empty()) {
      // The header is all there is.
    } else if (to == worker()) {
      loops_[static_cast<std::size_t>(channel)].sent.push_back(std::move(payload));
    } else {
      const auto [link, unused] =
          links_.try_emplace({to, channel, NcclLink::End::kSending}, api_, NcclLink::End::kSending, options_.compute);
      if (!link->second.is_open()) {
        const Result<NcclUniqueId> fresh = api_.get_unique_id();
        if (!fresh) return fail(fresh.error());
        ids_[link->first] = *fresh;
        if (const Status opened = link->second.open(*fresh); !opened) return fail(opened.error());
      }
      id = ids_[link->first];
      link->second.enqueue(std::move(payload));
    }
    host_->send(to, channel, notice_header(header), encode_notice(header, id));
    progress();
    posted_.notify_one();
  }

  ReceiveId post_receive(int from, Channel channel, const FrameHeader& expected, Buffer into) override {
    EVERSTEP_CHECK(expected.length == into.size, "the expected length is not the buffer's size");
    const std::lock_guard lock(mutex_);
    Receive& receive = receives_[next_id_];
    receive.from = from;
    receive.channel = channel;
    receive.expected = expected;
    receive.into = into;
    if (!error_ && goes_by_host(channel)) {
      receive.host_id = host_->post_receive(from, channel, expected, std::move(into));
    } else if (!error_) {
      receive.notice = allocate_scratch(kNoticeBytes);
      receive.host_id = host_->post_receive(from, channel, notice_header(expected), receive.notice);
      if (from == worker() && !into.empty()) {
        loops_[static_cast<std::size_t>(channel)].wanted.push_back(std::move(into));
      } else if (!into.empty()) {
        receive.transfer = receiving_link(receive).enqueue(std::move(into));
      }
      progress();
    }
    posted_.notify_one();
    return next_id_++;
  }

  bool ready(ReceiveId receive) override {
    const std::lock_guard lock(mutex_);
    progress();
    return error_ || is_complete(find(receive));
  }

  Result<FrameHeader> wait(ReceiveId receive, std::chrono::milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    const Receive& waiting = find(receive);
    poll_until(
        lock, timeout, [&] { return is_complete(waiting); },
        "the " + to_string(waiting.expected) + " did not come from worker " + std::to_string(waiting.from),
        waiting.from);
    if (error_) return *error_;
    return *receives_.extract(receive).mapped().header;
  }

  Status flush(std::chrono::milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    poll_until(
        lock, timeout, [this] { return all_sent(); }, "frames were not taken");
    return error_ ? Status(*error_) : host_->flush(timeout);
  }

  Status status() override {
    const std::lock_guard lock(mutex_);
    progress();
    return outcome();
  }

  std::optional<LostPeer> lost() const override {
    const std::lock_guard lock(mutex_);
    return lost_ ? lost_ : host_->lost();
  }

  // The host's error is found by the next progress().
  void abort(Error reason) override { host_->abort(std::move(reason)); }

  Status close(std::chrono::milliseconds timeout) override {
    EVERSTEP_TRY(flush(timeout));
    stop_service();
    std::unique_lock lock(mutex_);
    poll_until(
        lock, timeout, [this] { return close_links(); }, "NCCL's communicators did not end");
    if (error_) return *error_;
    closed_ = true;
    return host_->close(timeout);
  }

  void leave() override {
    end_here();
    host_->leave();
  }

  void break_off() override {
    end_here();
    host_->break_off();
  }

 private:
  void end_here() {
    stop_service();
    const std::lock_guard lock(mutex_);
    fail({ErrorCode::kCancelled, "this worker left", {}});
    closed_ = true;
  }

  using LinkKey = std::tuple<int, Channel, NcclLink::End>;

  Status outcome() const { return error_ ? Status(*error_) : Status(); }

  Receive& find(ReceiveId receive) {
    const auto found = receives_.find(receive);
    EVERSTEP_CHECK(found != receives_.end(), "a receive is waited for that was not posted or is over");
    return found->second;
  }

  NcclLink& receiving_link(const Receive& receive) {
    const LinkKey key{receive.from, receive.channel, NcclLink::End::kReceiving};
    return links_.try_emplace(key, api_, NcclLink::End::kReceiving, options_.compute).first->second;
  }

  // The first error stays, and ends all communicators.
  void fail(Error error) {
    if (error_) return;
    error_ = std::move(error);
    std::vector<NcclCommunicator> communicators;
    for (auto& [key, link] : links_) {
      if (link.is_open()) communicators.push_back(link.take_communicator());
    }
    if (!end_communicators(api_, communicators, options_.abort_limit)) {
      error_->hint = "NCCL did not give its communicators up within " + std::to_string(options_.abort_limit.count()) +
                     " ms: end this process";
    }
  }

  void progress() {
    if (error_) return;
    if (const Status status = move_on(); !status) fail(status.error());
  }

  Status move_on() {
    EVERSTEP_TRY(host_->status());
    for (auto& [id, receive] : receives_) EVERSTEP_TRY(take_header(receive));
    for (auto& [key, link] : links_) EVERSTEP_TRY(link.advance());
    for (Loop& loop : loops_) EVERSTEP_TRY(copy_to_self(loop));
    return {};
  }

  // Takes notice of a header if it has come, and opens the link with the first.
  Status take_header(Receive& receive) {
    if (receive.header || !host_->ready(receive.host_id)) return {};
    const Result<FrameHeader> came = host_->wait(receive.host_id, 0ms);
    if (!came) return came.error();
    if (receive.notice.empty()) {
      receive.header = *came;
      return {};
    }
    const std::span<const std::byte> notice = receive.notice.as<const std::byte>();
    const Result<FrameHeader> header = decode_frame(notice.first(kFrameHeaderBytes));
    if (!header) return header.error();
    EVERSTEP_TRY(check_frame(*header, receive.expected));
    receive.header = *header;
    if (!receive.transfer || receiving_link(receive).is_open()) return {};
    NcclUniqueId id{};
    std::copy_n(notice.begin() + kFrameHeaderBytes, id.size(), id.begin());
    return receiving_link(receive).open(id);
  }

  // On the compute stream, so it stands behind what fills the payload and before what reads it.
  Status copy_to_self(Loop& loop) {
    while (!loop.sent.empty() && !loop.wanted.empty()) {
      const Buffer from = std::exchange(loop.sent.front(), {});
      const Buffer to = std::exchange(loop.wanted.front(), {});
      loop.sent.pop_front();
      loop.wanted.pop_front();
      if (from.size != to.size) continue;  // the header is refused as well
      const NcclOutcome copied = api_.copy_on_device(to.data, from.data, from.size, options_.compute);
      if (copied.failed()) return Error{ErrorCode::kInternal, "CUDA: a copy failed: " + copied.error, {}};
    }
    return {};
  }

  bool is_complete(const Receive& receive) {
    return receive.header && (!receive.transfer || receiving_link(receive).is_over(*receive.transfer));
  }

  bool all_sent() const {
    return std::all_of(links_.begin(), links_.end(), [](const auto& entry) {
      return std::get<NcclLink::End>(entry.first) == NcclLink::End::kReceiving || entry.second.is_idle();
    });
  }

  bool close_links() {
    bool all = true;
    for (auto& [key, link] : links_) {
      const Result<bool> over = link.close();
      if (!over) {
        fail(over.error());
        return true;
      }
      all = all && *over;
    }
    return all;
  }

  template <typename Condition>
  void poll_until(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds timeout, Condition condition,
                  const std::string& late, std::optional<int> from = {}) {
    const auto deadline = api_.now() + timeout;
    while (true) {
      progress();
      if (error_ || condition()) return;
      if (api_.now() >= deadline) {
        if (from) lost_ = LostPeer{*from, LostPeer::How::kSilent};
        return fail({ErrorCode::kDeadlineExceeded, late + " within " + std::to_string(timeout.count()) + " ms", {}});
      }
      lock.unlock();
      api_.pause(kPollInterval);
      lock.lock();
    }
  }

  // The service thread moves transfers on while the caller computes: a communicator that is still being made when its
  // first frame is sent, a header that comes meanwhile. It sleeps when nothing is under way.
  void serve() {
    static_cast<void>(api_.set_device(options_.device));  // CUDA remembers it per thread; the maker has checked it
    std::unique_lock lock(mutex_);
    while (!stopping_ && !error_) {
      progress();
      if (is_quiet()) {
        posted_.wait(lock);
      } else {
        posted_.wait_for(lock, kServiceInterval);
      }
    }
  }

  bool is_quiet() const {
    return std::all_of(receives_.begin(), receives_.end(), [](const auto& entry) { return entry.second.header; }) &&
           std::all_of(links_.begin(), links_.end(), [](const auto& entry) { return entry.second.is_idle(); });
  }

  void stop_service() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    posted_.notify_all();
    if (service_.joinable()) service_.join();
  }

  NcclApi api_;
  std::unique_ptr<Transport> host_;
  NcclTransportOptions options_;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable posted_;
  std::map<LinkKey, NcclLink> links_;
  std::map<LinkKey, NcclUniqueId> ids_;
  std::array<Loop, kChannels> loops_;
  std::map<ReceiveId, Receive> receives_;
  ReceiveId next_id_ = 1;
  std::optional<Error> error_;
  std::optional<LostPeer> lost_;  // if not the host's
  bool stopping_ = false;
  bool closed_ = false;

  std::thread service_;
};

}  // namespace

Result<std::unique_ptr<Transport>> make_nccl_transport(NcclApi api, std::unique_ptr<Transport> host,
                                                       const NcclTransportOptions& options) {
  if (const int version = api.get_version(); version < kOldestNccl) {
    return not_found("NCCL has version " + std::to_string(version) + ", which cannot revoke communicators",
                     "use 2.30 or newer");
  }
  if (const NcclOutcome device = api.set_device(options.device); device.failed()) {
    return not_found("cannot use GPU " + std::to_string(options.device) + ": " + device.error,
                     "nvidia-smi lists the GPUs");
  }
  return std::unique_ptr<Transport>(std::make_unique<NcclTransport>(std::move(api), std::move(host), options));
}

}  // namespace everstep::trainer
