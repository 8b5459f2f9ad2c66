#include "trainer/socket/tls/tls_stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/check.h"
#include "trainer/socket/dialing.h"
#include "trainer/socket/plain_stream.h"
#include "trainer/socket/tls/tls_context.h"

namespace everstep::trainer {
namespace {

using Kind = StreamResult::Kind;

constexpr std::size_t kRecord = 16 << 10;    // the most that one record holds
constexpr std::size_t kGathered = 64 << 10;  // what leaves with one call of the kernel

// The socket as OpenSSL sees it. Several records leave, and come, with one call of the kernel.
//
// Writing takes all that it is given: whoever calls SSL_write looks first whether there is room. So OpenSSL never has a
// half-written record to come back to. Reading ahead is done here, and not by OpenSSL: that moves all it has read ahead
// to the front of its buffer with each record.
class BufferedSocket {
 public:
  explicit BufferedSocket(int socket) : socket_(socket) { out_.reserve(kGathered + 2 * kRecord); }

  void write(const char* bytes, std::size_t count) { out_.insert(out_.end(), bytes, bytes + count); }
  std::size_t unsent() const { return out_.size(); }

  // What has left is removed at once: a connection that is never idle would keep it without end.
  StreamResult flush() {
    StreamResult result{Kind::kMoved};
    std::size_t sent = 0;
    while (sent < out_.size() && result.moved()) {
      const iovec rest{out_.data() + sent, out_.size() - sent};
      result = write_socket(socket_, {&rest, 1});
      sent += result.bytes;
    }
    out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(sent));
    return result;
  }

  StreamResult read(char* bytes, std::size_t count) {
    if (unread() == 0) {
      const iovec all{in_.get(), kReadAhead};
      StreamResult came = read_socket(socket_, {&all, 1});
      has_heard_ = has_heard_ || came.moved();
      has_ended_ = came.kind == Kind::kEnded;
      if (!came.moved()) return came;
      taken_ = 0;
      filled_ = came.bytes;
    }
    count = std::min(count, unread());
    std::memcpy(bytes, in_.get() + taken_, count);
    taken_ += count;
    return {Kind::kMoved, count};
  }
  std::size_t unread() const { return filled_ - taken_; }

  bool has_heard() const { return has_heard_; }  // anything from the other side
  bool has_ended() const { return has_ended_; }  // it said that nothing more comes

 private:
  static constexpr std::size_t kReadAhead = 128 << 10;

  int socket_;
  std::vector<char> out_;
  std::unique_ptr<char[]> in_ = std::make_unique_for_overwrite<char[]>(kReadAhead);
  std::size_t taken_ = 0;  // of those that `in_` is filled with
  std::size_t filled_ = 0;
  bool has_heard_ = false;
  bool has_ended_ = false;
};

BufferedSocket& socket_of(BIO* bio) { return *static_cast<BufferedSocket*>(BIO_get_data(bio)); }

int bio_write(BIO* bio, const char* bytes, int count) {
  BIO_clear_retry_flags(bio);
  socket_of(bio).write(bytes, static_cast<std::size_t>(count));
  return count;
}

int bio_read(BIO* bio, char* bytes, int count) {
  BIO_clear_retry_flags(bio);
  const StreamResult result = socket_of(bio).read(bytes, static_cast<std::size_t>(count));
  if (result.moved()) return static_cast<int>(result.bytes);
  if (result.kind == Kind::kBlocked) BIO_set_retry_read(bio);
  return result.kind == Kind::kEnded ? 0 : -1;
}

long bio_control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return socket_of(bio).has_ended() ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;  // the stream flushes when it is time
}

const BIO_METHOD* buffered_bio() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "buffered socket");
    EVERSTEP_CHECK(made != nullptr, "OpenSSL is out of memory");
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_ctrl(made, bio_control);
    BIO_meth_set_create(made, [](BIO* bio) {
      BIO_set_init(bio, 1);
      return 1;
    });
    return made;
  }();
  return method;
}

class TlsStream final : public ByteStream {
 public:
  TlsStream(SSL_CTX* context, FileDescriptor socket, TlsStreamOptions options)
      : options_(std::move(options)),
        socket_(std::move(socket)),
        buffered_(socket_.get()),
        ssl_(SSL_new(context), SSL_free) {
    BIO* const bio = BIO_new(buffered_bio());
    EVERSTEP_CHECK(ssl_ && bio != nullptr, "OpenSSL is out of memory");
    BIO_set_data(bio, &buffered_);
    SSL_set_bio(ssl_.get(), bio, bio);
    SSL_set_app_data(ssl_.get(), &options_.key);
    options_.side == TlsSide::kCaller ? SSL_set_connect_state(ssl_.get()) : SSL_set_accept_state(ssl_.get());
  }

  int descriptor() const override { return socket_.get(); }
  bool encrypts() const override { return true; }
  std::string_view name() const override { return "tls"; }

  StreamResult negotiate() override {
    ERR_clear_error();
    const int done = SSL_do_handshake(ssl_.get());
    const int error = SSL_get_error(ssl_.get(), done);
    const bool is_hang_up = is_end(error);
    StreamResult sent = buffered_.flush();
    if (sent.kind == Kind::kBroken || (done != 1 && is_hang_up)) {
      return buffered_.has_heard() ? StreamResult{Kind::kBroken, 0, std::string(kHungUp)} : StreamResult{Kind::kEnded};
    }
    if (done != 1 && error != SSL_ERROR_WANT_READ) return {Kind::kBroken, 0, explain(error)};
    if (!sent.moved()) return sent;
    if (done != 1) return {};
    // A server without the key may show a certificate instead, and a client without one may believe it.
    if (!options_.has_certificates && SSL_session_reused(ssl_.get()) != 1) {
      return {Kind::kBroken, 0, std::string(kOtherTlsKey) + ": the other side did not use one"};
    }
    return {Kind::kMoved};
  }
  short awaited() const override { return buffered_.unsent() > 0 ? POLLOUT : POLLIN; }

  StreamResult read(std::span<const iovec> into) override {
    StreamResult all;
    may_have_more_ = true;
    for (iovec rest : into) {
      while (rest.iov_len > 0) {
        std::size_t count = 0;
        ERR_clear_error();
        if (SSL_read_ex(ssl_.get(), rest.iov_base, rest.iov_len, &count) != 1) {
          may_have_more_ = false;
          return all.bytes > 0 ? all : not_read(SSL_get_error(ssl_.get(), 0));
        }
        rest = {static_cast<char*>(rest.iov_base) + count, rest.iov_len - count};
        all = {Kind::kMoved, all.bytes + count};
      }
    }
    return all;
  }

  StreamResult write(std::span<const iovec> from) override {
    if (buffered_.unsent() >= kGathered) {
      StreamResult sent = buffered_.flush();
      if (sent.kind == Kind::kBroken) return sent;
    }
    StreamResult all;
    while (buffered_.unsent() < kGathered) {
      const std::span<const char> record = next_record(from, all.bytes);
      if (record.empty()) break;
      std::size_t count = 0;
      ERR_clear_error();
      if (SSL_write_ex(ssl_.get(), record.data(), record.size(), &count) != 1) {
        return {Kind::kBroken, 0, explain(SSL_get_error(ssl_.get(), 0))};
      }
      all = {Kind::kMoved, all.bytes + count};
      replace_key_after(count);
    }
    const StreamResult sent = buffered_.flush();
    return sent.kind == Kind::kBroken ? sent : all;
  }

  bool has_unsent() const override { return buffered_.unsent() > 0; }
  StreamResult flush() override { return buffered_.flush(); }
  // A part of a record is nothing to read.
  bool has_unread() const override {
    return may_have_more_ && (buffered_.unread() > 0 || SSL_has_pending(ssl_.get()) == 1);
  }

  void end_writing() override {
    ERR_clear_error();
    SSL_shutdown(ssl_.get());  // only gathers the word that says so
    buffered_.flush();
    ::shutdown(socket_.get(), SHUT_WR);
  }

  void notice_lost_host() override { trainer::notice_lost_host(socket_.get()); }

  std::string binding() const override {
    std::array<unsigned char, 32> exported{};
    constexpr std::string_view kLabel = "EXPORTER-everstep-wire";
    EVERSTEP_CHECK(SSL_export_keying_material(ssl_.get(), exported.data(), exported.size(), kLabel.data(),
                                              kLabel.size(), nullptr, 0, 0) == 1,
                   "OpenSSL exports nothing");
    return {exported.begin(), exported.end()};
  }

 private:
  StreamResult not_read(int error) {
    if (error == SSL_ERROR_WANT_READ) return {};
    if (error == SSL_ERROR_ZERO_RETURN) return {Kind::kEnded};
    return {Kind::kBroken, 0, explain(error)};
  }

  // The connection is gone, and nobody said why.
  static bool is_end(int error) {
    return error == SSL_ERROR_SYSCALL ||
           (error == SSL_ERROR_SSL && ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING);
  }

  static std::string explain(int error) {
    const int reason = ERR_GET_REASON(ERR_peek_error());
    if (error == SSL_ERROR_SSL &&
        (reason == SSL_R_BINDER_DOES_NOT_VERIFY || reason == SSL_R_TLSV1_ALERT_DECRYPT_ERROR ||
         reason == SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER)) {
      return std::string(kOtherTlsKey) + ": " + last_tls_error();
    }
    return is_end(error) ? std::string(kHungUp) : last_tls_error();
  }

  // The next bytes behind the first `skipped` of all parts. A part that fills no record is put together with the next.
  std::span<const char> next_record(std::span<const iovec> parts, std::size_t skipped) {
    std::size_t gathered = 0;
    for (const iovec& part : parts) {
      if (skipped >= part.iov_len) {
        skipped -= part.iov_len;
        continue;
      }
      const std::span<const char> rest(static_cast<const char*>(part.iov_base) + skipped, part.iov_len - skipped);
      skipped = 0;
      const bool is_last = &part == &parts.back();
      if (gathered == 0 && (is_last || rest.size() >= kRecord)) return rest.first(std::min(rest.size(), kRecord));
      const std::size_t count = std::min(rest.size(), kRecord - gathered);
      std::memcpy(record_.data() + gathered, rest.data(), count);
      gathered += count;
    }
    return {record_.data(), gathered};
  }

  // OpenSSL never does so by itself, and a key of AES-GCM must not encrypt without end.
  void replace_key_after(std::size_t count) {
    written_ += count;
    if (written_ < options_.rekey_after) return;
    written_ = 0;
    EVERSTEP_CHECK(SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1, "OpenSSL does not change the key");
  }

  TlsStreamOptions options_;
  FileDescriptor socket_;
  BufferedSocket buffered_;
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
  std::array<char, kRecord> record_{};
  bool may_have_more_ = true;  // OpenSSL has not said that it wants more from the socket
  std::uint64_t written_ = 0;  // since the last change of the key
};

}  // namespace

std::unique_ptr<ByteStream> make_tls_stream(SSL_CTX* context, FileDescriptor socket, TlsStreamOptions options) {
  return std::make_unique<TlsStream>(context, std::move(socket), std::move(options));
}

std::string last_tls_error() {
  const char* const reason = ERR_reason_error_string(ERR_peek_error());
  return reason != nullptr ? reason : std::string(kHungUp);
}

}  // namespace everstep::trainer
