#include "storage/openssl/openssl_hashing.h"

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/text.h"

namespace everstep::storage {
namespace {

// FIPS 180-4's examples, and NIST's for the empty message.
TEST(OpensslHashing, GivesTheKnownAnswersOfSha256) {
  const auto hashing = make_openssl_hashing();
  const auto hash = [&](std::string_view text) { return to_string(sha256_of(*hashing, text)); };
  EXPECT_EQ(hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hash(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(OpensslHashing, DoesNotCareHowBytesWereDivided) {
  const auto hashing = make_openssl_hashing();
  const std::string text(1000, 'x');
  const auto bytes = std::as_bytes(std::span(text));
  for (const std::size_t first : {0, 1, 63, 64, 65, 999, 1000}) {
    const auto hasher = hashing->sha256();
    hasher->add(bytes.first(first));
    hasher->add(bytes.subspan(first));
    EXPECT_EQ(hasher->finish(), sha256_of(*hashing, text)) << first;
  }
}

struct HmacCase {
  std::string key;
  std::string text;
  std::string mac;
};

// RFC 4231, test cases 1 to 4, 6 and 7 (5 is truncated).
TEST(OpensslHashing, GivesTheKnownAnswersOfHmac) {
  const auto counting = [] {
    std::string key;
    for (char c = 1; c <= 25; ++c) key += c;
    return key;
  }();
  const HmacCase cases[] = {
      {std::string(20, '\x0b'), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
      {"Jefe", "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
      {std::string(20, '\xaa'), std::string(50, '\xdd'),
       "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
      {counting, std::string(50, '\xcd'), "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
      {std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First",
       "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
      {std::string(131, '\xaa'),
       "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be "
       "hashed "
       "before being used by the HMAC algorithm.",
       "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
      // An empty key is a key, too: the same as 64 zeros.
      {"", "", "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"},
  };
  const auto hashing = make_openssl_hashing();
  for (const HmacCase& each : cases) {
    EXPECT_EQ(to_string(hashing->hmac_sha256(each.key, each.text)), each.mac) << each.text;
  }
  EXPECT_EQ(to_string(hashing->hmac_sha256({}, {})), cases[6].mac) << "views of nothing";
}

TEST(OpensslHashing, HashesInManyThreads) {
  const auto hashing = make_openssl_hashing();
  const Digest expected = sha256_of(*hashing, std::string(100'000, 'q'));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) EXPECT_EQ(sha256_of(*hashing, std::string(100'000, 'q')), expected);
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(OpensslHashingDeathTest, FinishesOnce) {
  const auto hashing = make_openssl_hashing();
  const auto hasher = hashing->sha256();
  hasher->finish();
  EXPECT_DEATH(hasher->finish(), "finishes once");
  EXPECT_DEATH(hasher->add({}), "no more bytes");
}

}  // namespace
}  // namespace everstep::storage
