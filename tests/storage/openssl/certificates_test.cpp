#include "storage/openssl/certificates.h"

#include <ctime>
#include <memory>

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace everstep::storage {
namespace {

constexpr std::time_t kYear = 365 * 24 * 3600;

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

Certificate certificate_of(const std::string& pem) {
  BIO* text = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  Certificate certificate(PEM_read_bio_X509(text, nullptr, nullptr, nullptr), X509_free);
  BIO_free(text);
  return certificate;
}

// Whether someone who trusts that authority alone takes the certificate for that use when it is `when`.
bool is_trusted(const std::string& pem, const std::string& authority, int purpose, std::time_t when) {
  const Certificate certificate = certificate_of(pem);
  const Certificate trusted = certificate_of(authority);
  X509_STORE* store = X509_STORE_new();
  X509_STORE_add_cert(store, trusted.get());
  X509_STORE_CTX* check = X509_STORE_CTX_new();
  X509_STORE_CTX_init(check, store, certificate.get(), nullptr);
  X509_STORE_CTX_set_purpose(check, purpose);
  X509_STORE_CTX_set_time(check, 0, when);
  const bool is_good = X509_verify_cert(check) == 1;
  X509_STORE_CTX_free(check);
  X509_STORE_free(store);
  return is_good;
}

bool fits(const Identity& identity) {
  const Certificate certificate = certificate_of(identity.certificate);
  BIO* text = BIO_new_mem_buf(identity.key.data(), static_cast<int>(identity.key.size()));
  EVP_PKEY* key = PEM_read_bio_PrivateKey(text, nullptr, nullptr, nullptr);
  const bool is_its_key = X509_check_private_key(certificate.get(), key) == 1;
  EVP_PKEY_free(key);
  BIO_free(text);
  return is_its_key;
}

TEST(PrivateCertificates, AreTrustedForWhatTheyAreForNowAndWhenAClockIsYearsWrong) {
  const PrivateCertificates all = make_private_certificates();
  EXPECT_TRUE(fits(all.server));
  EXPECT_TRUE(fits(all.client));
  EXPECT_EQ(X509_check_ip_asc(certificate_of(all.server.certificate).get(), "127.0.0.1", 0), 1);
  for (const std::time_t when : {std::time(nullptr), std::time(nullptr) - 9 * kYear, std::time(nullptr) + 9 * kYear}) {
    EXPECT_TRUE(is_trusted(all.server.certificate, all.authority, X509_PURPOSE_SSL_SERVER, when)) << when;
    EXPECT_TRUE(is_trusted(all.client.certificate, all.authority, X509_PURPOSE_SSL_CLIENT, when)) << when;
  }
  EXPECT_FALSE(is_trusted(all.client.certificate, all.authority, X509_PURPOSE_SSL_SERVER, std::time(nullptr)))
      << "a client is no server";
}

TEST(PrivateCertificates, MeanNothingToThoseOfAnotherCall) {
  const PrivateCertificates mine = make_private_certificates();
  const PrivateCertificates others = make_private_certificates();
  EXPECT_NE(mine.client.key, others.client.key);
  EXPECT_FALSE(is_trusted(others.client.certificate, mine.authority, X509_PURPOSE_SSL_CLIENT, std::time(nullptr)));
  EXPECT_FALSE(is_trusted(others.server.certificate, mine.authority, X509_PURPOSE_SSL_SERVER, std::time(nullptr)));
  EXPECT_FALSE(
      is_trusted(mine.server.certificate, mine.client.certificate, X509_PURPOSE_SSL_SERVER, std::time(nullptr)))
      << "a client signs nothing";
}

}  // namespace
}  // namespace everstep::storage
