#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <sys/uio.h>

namespace everstep::trainer {

// StreamResult::reason if the other side is gone, and nobody said why.
inline constexpr std::string_view kHungUp = "the connection ended";

// What came of a call that does not block.
struct StreamResult {
  enum class Kind : std::uint8_t {
    kMoved,    // so many bytes, at least one; or what was asked is done
    kBlocked,  // nothing can be done before the descriptor is ready again
    kEnded,    // the other side said that nothing more comes
    kBroken,   // the connection is of no use any more
  };

  Kind kind = Kind::kBlocked;
  std::size_t bytes = 0;
  std::string reason{};  // kBroken

  bool moved() const { return kind == Kind::kMoved; }
  bool is_hang_up() const { return kind == Kind::kEnded || (kind == Kind::kBroken && reason == kHungUp); }
};

// What both ends of a connection read and write, in order, after negotiate(). Nothing blocks. Not thread-safe.
class ByteStream {
 public:
  virtual ~ByteStream() = default;

  // To poll. Also while it is not connected yet: it becomes writable then.
  virtual int descriptor() const = 0;

  // Until kMoved: each side makes sure of the other as far as this kind of stream can. kEnded: the other side hung up
  // and never said a word.
  virtual StreamResult negotiate() = 0;
  // What negotiate() waits for: POLLIN or POLLOUT.
  virtual short awaited() const = 0;

  // As many bytes as there are now. Until it said kBlocked there may be more that poll() does not show.
  virtual StreamResult read(std::span<const iovec> into) = 0;

  // Takes bytes, which are copied then. kBlocked: none.
  virtual StreamResult write(std::span<const iovec> from) = 0;

  // Whether bytes were taken that the kernel has not; flush() tries again.
  virtual bool has_unsent() const = 0;
  virtual StreamResult flush() = 0;

  // Whether there are bytes to read that poll() does not show.
  virtual bool has_unread() const = 0;

  // Says that nothing more comes; what was written before still arrives.
  virtual void end_writing() = 0;

  // For a stream that is always read: breaks it when its host was lost some 2 s ago.
  virtual void notice_lost_host() = 0;

  // A number of this connection that both ends have and nobody else can choose, or nothing where the kernel vouches for
  // the other end. A proof that covers it is worth nothing on another connection.
  virtual std::string binding() const = 0;

  // Whether bytes cost much more than their copying.
  virtual bool encrypts() const = 0;

  // For people: "unix", "tls".
  virtual std::string_view name() const = 0;
};

// Hands over a short text. A fresh or nearly idle connection takes it at once; if it is broken, the next read says so.
inline void write_text(ByteStream& stream, std::string_view text) {
  const iovec from{const_cast<char*>(text.data()), text.size()};  // it is only read
  stream.write({&from, 1});
}

}  // namespace everstep::trainer
