#include "trainer/socket/tls/tls_context.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/socket/stranger.h"
#include "tests/trainer/socket/tls/tls_ends.h"

// Who may connect, and who may not.
namespace everstep::trainer {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Kind = StreamResult::Kind;

void expect_refused(const StreamPair& streams) {
  const auto [caller, called] = streams.negotiate();
  EXPECT_FALSE(called.moved()) << "the called side accepts it";
  const bool is_refused = !caller.moved() || read_text(*streams.caller, 1).empty();
  EXPECT_TRUE(is_refused);
}

TEST(TlsContexts, TheSameKeyConnects) {
  const auto caller = key_context();
  const auto called = key_context();
  const auto [one, other] = tls_pair(*caller, *called).negotiate();
  EXPECT_TRUE(one.moved()) << one.reason;
  EXPECT_TRUE(other.moved()) << other.reason;
}

TEST(TlsContexts, AnotherSecretIsToldFromOtherFailures) {
  const auto [caller, called] = tls_pair(*key_context("one"), *key_context("two")).negotiate();
  EXPECT_THAT(caller.reason, StartsWith(kOtherTlsKey));
  EXPECT_THAT(called.reason, StartsWith(kOtherTlsKey));
}

// So nothing can be thrown back, or played at somebody else.
TEST(TlsContexts, AKeyIsForOneCalledWorkerOfOneLineage) {
  const auto context = key_context();
  for (const TlsPurpose& other : {TlsPurpose{kTestLineage + 1, kTestPurpose.called},
                                  TlsPurpose{kTestLineage, "127.0.0.1:4712"}, TlsPurpose{kTestLineage, ""}}) {
    SocketPair sockets = connected_sockets();
    expect_refused(
        {context->call(std::move(sockets.caller), other), context->answer(std::move(sockets.called), kTestPurpose)});
  }
}

TEST(TlsContexts, ACallerWithTheKeyRefusesAServerThatShowsACertificateInstead) {
  const auto context = key_context();
  const auto server = BareTls::server();
  BareTls::use_certificates(*server);
  SocketPair sockets = connected_sockets();
  const auto caller = context->call(std::move(sockets.caller), kTestPurpose);
  BareTls thief(*server, std::move(sockets.called), TlsSide::kCalled);
  EXPECT_FALSE(thief.negotiate_with(*caller));
  EXPECT_THAT(thief.why_ours_refused, HasSubstr("certificate verify failed"));
}

// The same if nobody had told OpenSSL to verify certificates.
TEST(TlsContexts, ACallerThatBelievesEveryCertificateAsksForTheKeyAllTheSame) {
  const auto credulous = BareTls::client();
  SSL_CTX_set_verify(credulous.get(), SSL_VERIFY_NONE, nullptr);
  const auto server = BareTls::server();
  BareTls::use_certificates(*server);
  for (const bool has_certificates : {true, false}) {
    SocketPair sockets = connected_sockets();
    const auto caller = make_tls_stream(credulous.get(), std::move(sockets.caller),
                                        {TlsSide::kCaller, has_certificates, {}, kTlsKeyBytes});
    BareTls thief(*server, std::move(sockets.called), TlsSide::kCalled);
    EXPECT_EQ(thief.negotiate_with(*caller), has_certificates) << thief.why_ours_refused;
    EXPECT_THAT(thief.why_ours_refused, StartsWith(has_certificates ? "" : kOtherTlsKey));
  }
}

TEST(TlsContexts, ACallerWithoutTheKeyIsRefused) {
  const auto context = key_context();
  for (const bool shows_certificate : {false, true}) {
    const auto client = BareTls::client();
    if (shows_certificate) BareTls::use_certificates(*client);
    SocketPair sockets = connected_sockets();
    const auto called = context->answer(std::move(sockets.called), kTestPurpose);
    BareTls thief(*client, std::move(sockets.caller), TlsSide::kCaller);
    EXPECT_FALSE(thief.negotiate_with(*called));
  }
}

TEST(TlsContexts, OlderTlsIsRefusedFromBothSides) {
  for (TlsContext* context : {key_context().release(), certificate_context().release()}) {
    const std::unique_ptr<TlsContext> ours(context);
    for (const TlsSide side : {TlsSide::kCaller, TlsSide::kCalled}) {
      const auto old = side == TlsSide::kCaller ? BareTls::client() : BareTls::server();
      SSL_CTX_set_max_proto_version(old.get(), TLS1_2_VERSION);
      BareTls::use_certificates(*old);
      SocketPair sockets = connected_sockets();
      const bool calls = side == TlsSide::kCaller;
      const auto stream = calls ? ours->answer(std::move(sockets.called), kTestPurpose)
                                : ours->call(std::move(sockets.caller), kTestPurpose);
      BareTls theirs(*old, std::move(calls ? sockets.caller : sockets.called), side);
      EXPECT_FALSE(theirs.negotiate_with(*stream));
      EXPECT_THAT(theirs.why_ours_refused, HasSubstr("protocol"));
    }
  }
}

TEST(TlsContexts, AKeyAndACertificateDoNotMeet) {
  const auto key = key_context();
  const auto certificate = certificate_context();
  expect_refused(tls_pair(*key, *certificate));
  expect_refused(tls_pair(*certificate, *key));
}

TEST(TlsContexts, CertificatesOfOneAuthorityConnectAndOthersDoNot) {
  const CertificateFiles stranger;
  const auto ours = certificate_context();
  const auto theirs = certificate_context(stranger.files);
  const auto [one, other] = tls_pair(*ours, *ours).negotiate();
  EXPECT_TRUE(one.moved() && other.moved()) << one.reason << other.reason;
  expect_refused(tls_pair(*theirs, *ours));
  const StreamPair answered_by_stranger = tls_pair(*ours, *theirs);
  EXPECT_FALSE(answered_by_stranger.negotiate().first.moved());
}

TEST(TlsContexts, ACallerWithoutACertificateIsRefused) {
  const auto context = certificate_context();
  const auto client = BareTls::client();
  SocketPair sockets = connected_sockets();
  const auto called = context->answer(std::move(sockets.called), kTestPurpose);
  BareTls thief(*client, std::move(sockets.caller), TlsSide::kCaller);
  EXPECT_FALSE(thief.negotiate_with(*called));
}

// A worker of the job's own, but for what it asks of OpenSSL.
class TlsExtras : public testing::Test {
 protected:
  TlsExtras() { BareTls::use_key(*client_); }

  // What the client hears after it was let in.
  void talk(BareTls& client, ByteStream& called) {
    write_all(called, "hello");
    std::string heard;
    while (heard.size() < 5) {
      std::size_t count = 0;
      std::string part(5, '\0');
      if (SSL_read_ex(&client.ssl(), part.data(), part.size(), &count) == 1) heard += part.substr(0, count);
    }
    EXPECT_EQ(heard, "hello");
  }

  BareTls::Context client_ = BareTls::client();
  std::unique_ptr<TlsContext> context_ = key_context();
  SocketPair sockets_ = connected_sockets();
};

TEST_F(TlsExtras, NoTicketsAreHandedOut) {
  const auto called = context_->answer(std::move(sockets_.called), kTestPurpose);
  BareTls client(*client_, std::move(sockets_.caller), TlsSide::kCaller);
  ASSERT_TRUE(client.negotiate_with(*called));
  talk(client, *called);
  EXPECT_EQ(client.tickets, 0);
}

TEST_F(TlsExtras, NoSessionIsTakenUpAgain) {
  const auto with_certificates = certificate_context();
  const auto client = BareTls::client();
  BareTls::use_certificates(*client);
  SSL_SESSION* session = nullptr;
  for (const bool again : {false, true}) {
    SocketPair sockets = connected_sockets();
    const auto called = with_certificates->answer(std::move(sockets.called), kTestPurpose);
    BareTls caller(*client, std::move(sockets.caller), TlsSide::kCaller);
    if (again) SSL_set_session(&caller.ssl(), session);
    ASSERT_TRUE(caller.negotiate_with(*called));
    talk(caller, *called);
    EXPECT_EQ(caller.tickets, 0);
    EXPECT_EQ(SSL_session_reused(&caller.ssl()), 0);
    EXPECT_EQ(SSL_SESSION_is_resumable(SSL_get0_session(&caller.ssl())), 0);
    if (!again) session = SSL_get1_session(&caller.ssl());
  }
  SSL_SESSION_free(session);
}

// Data that comes with the first words could be said again by anybody.
TEST_F(TlsExtras, EarlyDataIsNotHeard) {
  const auto called = context_->answer(std::move(sockets_.called), kTestPurpose);
  BareTls client(*client_, std::move(sockets_.caller), TlsSide::kCaller);
  std::size_t written = 0;
  ASSERT_EQ(SSL_write_early_data(&client.ssl(), "early", 5, &written), 1);
  ASSERT_TRUE(client.negotiate_with(*called));
  EXPECT_EQ(SSL_get_early_data_status(&client.ssl()), SSL_EARLY_DATA_REJECTED);
  ASSERT_EQ(SSL_write_ex(&client.ssl(), "later", 5, &written), 1);
  EXPECT_EQ(read_text(*called, 5), "later");
}

// Else whoever steals the secret later could read what was recorded before.
TEST_F(TlsExtras, KeysAreFreshEvenForACallerThatAsksForNone) {
  SSL_CTX_set_options(client_.get(), SSL_OP_ALLOW_NO_DHE_KEX);
  const auto called = context_->answer(std::move(sockets_.called), kTestPurpose);
  BareTls client(*client_, std::move(sockets_.caller), TlsSide::kCaller);
  ASSERT_TRUE(client.negotiate_with(*called));
  EVP_PKEY* fresh = nullptr;
  EXPECT_EQ(SSL_get_peer_tmp_key(&client.ssl(), &fresh), 1);
  EVP_PKEY_free(fresh);
  EXPECT_STREQ(SSL_get_version(&client.ssl()), "TLSv1.3");
  EXPECT_STREQ(SSL_get_cipher(&client.ssl()), "TLS_AES_128_GCM_SHA256");
}

TEST(TlsContexts, NameTheFileThatIsOfNoUse) {
  const TlsFiles good = test_certificates();
  const CertificateFiles other;
  const auto refusal = [](const TlsFiles& files) {
    const auto context = TlsContext::make(seal_with(kTestSecret), files);
    EXPECT_FALSE(context);
    EXPECT_EQ(context.error().code, ErrorCode::kInvalidArgument);
    return context.error().message;
  };
  EXPECT_THAT(refusal({"/nowhere/ca.pem", good.certificate, good.key}), HasSubstr("'/nowhere/ca.pem' as --tls-ca"));
  EXPECT_THAT(refusal({good.authority, "/nowhere/cert.pem", good.key}), HasSubstr("'/nowhere/cert.pem' as --tls-cert"));
  EXPECT_THAT(refusal({good.authority, good.certificate, "/nowhere/key"}), HasSubstr("'/nowhere/key' as --tls-key"));
  EXPECT_THAT(refusal({good.authority, good.certificate, other.files.key}), HasSubstr("as --tls-key"));
  EXPECT_THAT(refusal({good.key, good.certificate, good.key}), HasSubstr("as --tls-ca"));
}

}  // namespace
}  // namespace everstep::trainer
