#include "storage/openssl/openssl_hashing.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/check.h"

namespace everstep::storage {
namespace {

unsigned char* data_of(Digest& digest) { return reinterpret_cast<unsigned char*>(digest.bytes.data()); }

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
struct FreeAlgorithm {
  void operator()(EVP_MD* algorithm) const { EVP_MD_free(algorithm); }
};

class OpensslHasher final : public Hasher {
 public:
  explicit OpensslHasher(const EVP_MD* algorithm) : context_(EVP_MD_CTX_new()) {
    EVERSTEP_CHECK(context_ != nullptr && EVP_DigestInit_ex(context_.get(), algorithm, nullptr) == 1,
                   "SHA-256 cannot start");
  }

  void add(std::span<const std::byte> bytes) override {
    EVERSTEP_CHECK(context_ != nullptr, "a hash that was finished takes no more bytes");
    EVERSTEP_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1, "SHA-256 takes any bytes");
  }

  Digest finish() override {
    EVERSTEP_CHECK(context_ != nullptr, "a hash finishes once");
    Digest digest;
    unsigned size = 0;
    EVERSTEP_CHECK(EVP_DigestFinal_ex(context_.get(), data_of(digest), &size) == 1 && size == digest.bytes.size(),
                   "SHA-256 always has a result");
    context_ = nullptr;
    return digest;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, FreeContext> context_;
};

class OpensslHashing final : public Hashing {
 public:
  OpensslHashing() : sha256_(EVP_MD_fetch(nullptr, "SHA256", nullptr)) {
    EVERSTEP_CHECK(sha256_ != nullptr, "OpenSSL has SHA-256 unless its configuration forbids it");
  }

  std::unique_ptr<Hasher> sha256() const override { return std::make_unique<OpensslHasher>(sha256_.get()); }

  Digest hmac_sha256(std::string_view key, std::string_view text) const override {
    Digest digest;
    unsigned size = 0;
    // A null key would mean "the one before"; an empty view may have a null pointer.
    const char* key_data = key.empty() ? "" : key.data();
    EVERSTEP_CHECK(
        HMAC(sha256_.get(), key_data, static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
             text.size(), data_of(digest), &size) != nullptr &&
            size == digest.bytes.size(),
        "HMAC-SHA-256 of anything exists");
    return digest;
  }

 private:
  std::unique_ptr<EVP_MD, FreeAlgorithm> sha256_;  // looking it up by name for each file would take a lock
};

}  // namespace

std::unique_ptr<Hashing> make_openssl_hashing() { return std::make_unique<OpensslHashing>(); }

}  // namespace everstep::storage
