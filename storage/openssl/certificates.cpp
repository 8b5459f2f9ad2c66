#include "storage/openssl/certificates.h"

#include <cstddef>
#include <cstdint>
#include <memory>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "base/check.h"

namespace everstep::storage {
namespace {

constexpr int kDays = 10 * 365;

struct Free {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
  void operator()(BIO* text) const { BIO_free(text); }
};
using Key = std::unique_ptr<EVP_PKEY, Free>;
using Certificate = std::unique_ptr<X509, Free>;

struct Signed {
  Key key;
  Certificate certificate;
};

// What follows fails only where memory or random bytes do, or where OpenSSL's configuration forbids P-256.
void require(bool works, const char* what) { EVERSTEP_CHECK(works, std::string("OpenSSL cannot ") + what); }

Key make_key() {
  Key key(EVP_EC_gen("P-256"));
  require(key != nullptr, "make a key on P-256");
  return key;
}

void set_name(X509& certificate, const std::string& name) {
  const auto* text = reinterpret_cast<const unsigned char*>(name.c_str());
  require(X509_NAME_add_entry_by_txt(X509_get_subject_name(&certificate), "CN", MBSTRING_UTF8, text, -1, -1, 0) == 1,
          "name a certificate");
}

void set_serial(X509& certificate) {
  std::uint64_t serial = 0;
  require(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) == 1 &&
              ASN1_INTEGER_set_uint64(X509_get_serialNumber(&certificate), serial) == 1,
          "number a certificate");
}

void add_extension(X509& certificate, X509& issuer, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, &issuer, &certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, Free> extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value));
  require(extension != nullptr && X509_add_ext(&certificate, extension.get(), -1) == 1,
          "say what a certificate is for");
}

// All of a certificate but what it is for and who signs it.
Signed make_unsigned(const std::string& name) {
  Signed made{make_key(), Certificate(X509_new())};
  X509* certificate = made.certificate.get();
  require(certificate != nullptr && X509_set_version(certificate, X509_VERSION_3) == 1 &&
              X509_time_adj_ex(X509_getm_notBefore(certificate), -kDays, 0, nullptr) != nullptr &&
              X509_time_adj_ex(X509_getm_notAfter(certificate), kDays, 0, nullptr) != nullptr &&
              X509_set_pubkey(certificate, made.key.get()) == 1,
          "make a certificate");
  set_serial(*certificate);
  set_name(*certificate, name);
  return made;
}

void sign(const Signed& made, const Signed& issuer) {
  require(X509_set_issuer_name(made.certificate.get(), X509_get_subject_name(issuer.certificate.get())) == 1 &&
              X509_sign(made.certificate.get(), issuer.key.get(), EVP_sha256()) > 0,
          "sign a certificate");
}

Signed make_authority() {
  Signed made = make_unsigned("the authority of one job");
  X509& certificate = *made.certificate;
  add_extension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add_extension(certificate, certificate, NID_key_usage, "critical,keyCertSign");
  add_extension(certificate, certificate, NID_subject_key_identifier, "hash");
  sign(made, made);
  return made;
}

std::string text_of(BIO& memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(&memory, &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string pem_of(X509& certificate) {
  const std::unique_ptr<BIO, Free> memory(BIO_new(BIO_s_mem()));
  require(memory != nullptr && PEM_write_bio_X509(memory.get(), &certificate) == 1, "write a certificate");
  return text_of(*memory);
}

std::string pem_of(EVP_PKEY& key) {
  const std::unique_ptr<BIO, Free> memory(BIO_new(BIO_s_secmem()));
  require(memory != nullptr && PEM_write_bio_PrivateKey(memory.get(), &key, nullptr, nullptr, 0, nullptr, nullptr) == 1,
          "write a key");
  return text_of(*memory);
}

Identity make_identity(const Signed& authority, const std::string& name, const char* uses, const char* address) {
  const Signed made = make_unsigned(name);
  X509& certificate = *made.certificate;
  X509& issuer = *authority.certificate;
  add_extension(certificate, issuer, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(certificate, issuer, NID_key_usage, "critical,digitalSignature");
  add_extension(certificate, issuer, NID_ext_key_usage, uses);
  add_extension(certificate, issuer, NID_authority_key_identifier, "keyid");
  if (address != nullptr) add_extension(certificate, issuer, NID_subject_alt_name, address);
  sign(made, authority);
  return {pem_of(certificate), pem_of(*made.key)};
}

}  // namespace

PrivateCertificates make_private_certificates() {
  const Signed authority = make_authority();
  return {pem_of(*authority.certificate), make_identity(authority, "server", "serverAuth,clientAuth", "IP:127.0.0.1"),
          make_identity(authority, "client", "clientAuth", nullptr)};
}

}  // namespace everstep::storage
