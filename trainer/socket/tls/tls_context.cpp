#include "trainer/socket/tls/tls_context.h"

#include <span>
#include <utility>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/check.h"
#include "base/text.h"
#include "trainer/socket/tls/tls_stream.h"

namespace everstep::trainer {
namespace {

using ContextPointer = std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)>;

constexpr unsigned char kSuite[] = {0x13, 0x01};  // TLS_AES_128_GCM_SHA256

// RFC 8446 calls it the PSK identity: it travels in the clear.
std::string identity_of(const TlsPurpose& purpose) {
  return "everstep-wire-1 " + hex_text(purpose.lineage) + " " + purpose.called;
}

const ExternalKey& key_of(const SSL* ssl) { return *static_cast<const ExternalKey*>(SSL_get_app_data(ssl)); }

// A session that never was: this is how OpenSSL is given a key from outside.
SSL_SESSION* session_with(SSL* ssl, const storage::Digest& key) {
  SSL_SESSION* const session = SSL_SESSION_new();
  const auto* const bytes = reinterpret_cast<const unsigned char*>(key.bytes.data());
  EVERSTEP_CHECK(session != nullptr && SSL_SESSION_set1_master_key(session, bytes, key.bytes.size()) == 1 &&
                     SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, kSuite)) == 1 &&
                     SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1,
                 "OpenSSL does not take the key");
  return session;
}

int offer_key(SSL* ssl, const EVP_MD*, const unsigned char** identity, std::size_t* size, SSL_SESSION** session) {
  const ExternalKey& key = key_of(ssl);
  *identity = reinterpret_cast<const unsigned char*>(key.identity.data());
  *size = key.identity.size();
  *session = session_with(ssl, key.key);
  return 1;
}

// An identity that is not this worker's gets no key, and without one the handshake fails: there is no certificate.
int find_key(SSL* ssl, const unsigned char* identity, std::size_t size, SSL_SESSION** session) {
  const ExternalKey& key = key_of(ssl);
  const std::string_view asked(reinterpret_cast<const char*>(identity), size);
  *session = asked == key.identity ? session_with(ssl, key.key) : nullptr;
  return 1;
}

ContextPointer new_context(const SSL_METHOD* method) {
  ContextPointer context(SSL_CTX_new(method), SSL_CTX_free);
  EVERSTEP_CHECK(context && SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) == 1 &&
                     SSL_CTX_set_ciphersuites(context.get(), "TLS_AES_128_GCM_SHA256") == 1 &&
                     SSL_CTX_set1_groups_list(context.get(), "X25519") == 1,
                 "OpenSSL has no TLS 1.3");
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context.get(), 0);
  // Without certificates nobody's is accepted: an empty store trusts none, and a server with one has no key.
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return context;
}

// OpenSSL would ask at the terminal.
int refuse_password(char*, int, int, void*) { return -1; }

Status use_files(SSL_CTX* context, const TlsFiles& files) {
  const auto refuse = [](const std::string& option, const std::string& file) {
    return invalid_argument("cannot use '" + file + "' as " + option + ": " + last_tls_error(),
                            "it has to be a file in PEM");
  };
  ERR_clear_error();
  SSL_CTX_set_default_passwd_cb(context, refuse_password);
  if (SSL_CTX_load_verify_locations(context, files.authority.c_str(), nullptr) != 1) {
    return refuse("--tls-ca", files.authority);
  }
  if (SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1) {
    return refuse("--tls-cert", files.certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return refuse("--tls-key", files.key);
  }
  return {};
}

class Context final : public TlsContext {
 public:
  Context(HandshakeSeal seal, bool has_files)
      : seal_(std::move(seal)),
        has_files_(has_files),
        caller_(new_context(TLS_client_method())),
        called_(new_context(TLS_server_method())) {
    if (has_files_) return;
    // A server asks for no certificate when it is given none: it could not verify one.
    SSL_CTX_set_verify(called_.get(), SSL_VERIFY_NONE, nullptr);
    SSL_CTX_set_psk_use_session_callback(caller_.get(), offer_key);
    SSL_CTX_set_psk_find_session_callback(called_.get(), find_key);
  }

  Status use(const TlsFiles& files) {
    EVERSTEP_TRY(use_files(caller_.get(), files));
    return use_files(called_.get(), files);
  }

  std::unique_ptr<ByteStream> call(FileDescriptor socket, const TlsPurpose& purpose) override {
    return make_stream(caller_.get(), TlsSide::kCaller, std::move(socket), purpose);
  }
  std::unique_ptr<ByteStream> answer(FileDescriptor socket, const TlsPurpose& purpose) override {
    return make_stream(called_.get(), TlsSide::kCalled, std::move(socket), purpose);
  }

 private:
  std::unique_ptr<ByteStream> make_stream(SSL_CTX* context, TlsSide side, FileDescriptor socket,
                                          const TlsPurpose& purpose) const {
    const std::string identity = identity_of(purpose);
    TlsStreamOptions options{side, has_files_, {identity, seal_("tls key " + identity)}, kTlsKeyBytes};
    return make_tls_stream(context, std::move(socket), std::move(options));
  }

  const HandshakeSeal seal_;
  const bool has_files_;
  ContextPointer caller_;
  ContextPointer called_;
};

}  // namespace

Result<std::unique_ptr<TlsContext>> TlsContext::make(HandshakeSeal seal, const std::optional<TlsFiles>& files) {
  auto context = std::make_unique<Context>(std::move(seal), files.has_value());
  if (files) EVERSTEP_TRY(context->use(*files));
  return std::unique_ptr<TlsContext>(std::move(context));
}

}  // namespace everstep::trainer
