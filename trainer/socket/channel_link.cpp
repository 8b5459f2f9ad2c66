#include "trainer/socket/channel_link.h"

#include <algorithm>
#include <array>
#include <utility>

#include <sys/epoll.h>

#include "base/check.h"

namespace everstep::trainer {
namespace {

using Kind = StreamResult::Kind;

// What is left of a header and a payload behind the first `done` bytes of both, `limit` bytes at most.
std::array<iovec, 2> rest_of(FrameBytes& header, const Buffer& payload, std::size_t done, std::size_t limit) {
  const std::size_t of_header = std::min(done, header.size());
  const std::size_t of_payload = done - of_header;
  const std::size_t header_left = std::min(header.size() - of_header, limit);
  return {iovec{header.data() + of_header, header_left},
          iovec{payload.data + of_payload, std::min(payload.size - of_payload, limit - header_left)}};
}

}  // namespace

ChannelLink::ChannelLink(std::unique_ptr<ByteStream> stream, const FileDescriptor& service, std::uint64_t name)
    : stream_(std::move(stream)), service_(service.get()), name_(name) {
  epoll_event nothing{.events = EPOLLONESHOT, .data = {.u64 = name_}};
  EVERSTEP_CHECK(::epoll_ctl(service_, EPOLL_CTL_ADD, descriptor(), &nothing) == 0, "epoll_ctl failed");
}

void ChannelLink::queue(const FrameHeader& header, Buffer payload) {
  out_.push_back({encode_frame(header), std::move(payload)});
}

ChannelLink::Move ChannelLink::push(std::size_t limit) {
  while (!out_.empty() && limit > 0 && !nothing_leaves_) {
    Outgoing& frame = out_.front();
    const StreamResult result = stream_->write(rest_of(frame.header, frame.payload, frame.sent, limit));
    if (result.kind == Kind::kBlocked) return Move::kWait;
    nothing_leaves_ = !result.moved();
    limit -= std::min(limit, result.bytes);
    frame.sent += result.bytes;
    if (frame.sent == frame.header.size() + frame.payload.size) out_.pop_front();
  }
  if (!nothing_leaves_ && stream_->has_unsent()) {
    const StreamResult result = stream_->flush();
    if (result.kind == Kind::kBlocked) return Move::kWait;
    nothing_leaves_ = !result.moved();
  }
  if (nothing_leaves_) return has_output() ? Move::kOver : Move::kIdle;
  return out_.empty() ? Move::kIdle : Move::kMore;
}

Result<ChannelLink::Move> ChannelLink::pull(std::size_t limit) {
  while (!posted_.empty() && limit > 0 && !nothing_comes_) {
    Posted& posted = *posted_.front();
    const StreamResult result = stream_->read(rest_of(header_, posted.into, received_, limit));
    if (result.kind == Kind::kBlocked) return Move::kWait;
    nothing_comes_ = !result.moved();
    if (nothing_comes_) break;
    limit -= std::min(limit, result.bytes);
    if (const Status expected = took(result.bytes); !expected) {
      nothing_comes_ = true;  // what follows a frame that is not the expected one means nothing
      return expected.error();
    }
  }
  if (posted_.empty()) return Move::kIdle;
  return nothing_comes_ ? Move::kOver : Move::kMore;
}

// Nothing of a frame counts before its header is known to be the expected one.
Status ChannelLink::took(std::size_t bytes) {
  Posted& posted = *posted_.front();
  const bool had_header = received_ >= header_.size();
  received_ += bytes;
  if (!had_header && received_ >= header_.size()) {
    const Result<FrameHeader> header = decode_frame(header_);
    if (!header) {
      return Error{ErrorCode::kInternal,
                   "worker " + std::to_string(posted.from) + " sent garbage: " + header.error().message,
                   header.error().hint};
    }
    EVERSTEP_TRY(check_frame(*header, posted.expected));
    posted.came = *header;
  }
  if (received_ < header_.size() + posted.into.size) return {};
  received_ = 0;
  posted.complete = true;
  posted_.pop_front();
  return {};
}

void ChannelLink::arm() {
  std::uint32_t wanted = 0;
  if (!nothing_leaves_ && has_output()) wanted |= EPOLLOUT;
  if (service_reads()) wanted |= EPOLLIN;
  if (wanted == armed_) return;
  armed_ = wanted;
  epoll_event event{.events = wanted | EPOLLONESHOT, .data = {.u64 = name_}};
  EVERSTEP_CHECK(::epoll_ctl(service_, EPOLL_CTL_MOD, descriptor(), &event) == 0, "epoll_ctl failed");
}

}  // namespace everstep::trainer
