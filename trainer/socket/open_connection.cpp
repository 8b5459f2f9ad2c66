#include "trainer/socket/open_connection.h"

#include <array>
#include <span>

#include <poll.h>
#include <sys/random.h>

#include "base/check.h"

namespace everstep::trainer {

short OpenConnection::awaited() const {
  if (stage == Stage::kCalling) return POLLOUT;
  return stage == Stage::kNegotiating ? stream->awaited() : POLLIN;
}

StreamResult OpenConnection::read_reply(std::optional<Reply>& reply) {
  while (const std::size_t wanted = bytes_wanted()) {
    std::array<char, kReplyHeadBytes + kLongestReply> bytes{};
    const iovec into{bytes.data(), wanted};
    StreamResult came = stream->read({&into, 1});
    if (!came.moved()) return came;
    inbox.append(bytes.data(), came.bytes);
  }
  reply = decode_reply(std::as_bytes(std::span(inbox)));
  inbox.clear();
  return {StreamResult::Kind::kMoved};
}

// Until the reply is complete, or known to be none.
std::size_t OpenConnection::bytes_wanted() const {
  const std::span<const std::byte> here = std::as_bytes(std::span(inbox));
  if (here.size() < kReplyHeadBytes) return kReplyHeadBytes - here.size();
  const std::optional<std::size_t> body = reply_body_bytes(here.first(kReplyHeadBytes));
  return body ? kReplyHeadBytes + *body - here.size() : 0;
}

HandshakeNonce fresh_nonce() {
  HandshakeNonce nonce{};
  EVERSTEP_CHECK(::getrandom(nonce.data(), sizeof nonce, 0) == sizeof nonce, "getrandom failed");
  return nonce;
}

}  // namespace everstep::trainer
