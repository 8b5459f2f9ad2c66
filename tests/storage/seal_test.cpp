#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/documents.h"
#include "storage/openssl/openssl_hashing.h"

namespace everstep::storage {
namespace {

using testing::HasSubstr;

class SealTest : public testing::Test {
 protected:
  std::unique_ptr<Hashing> hashing_ = make_openssl_hashing();
  Seal plain_{*hashing_, ""};
  Seal secret_{*hashing_, "sesame"};
  const std::string text_ = "{\n  \"document\": \"head\"\n}\n";

  // What somebody can do who knows the format and not the secret.
  std::string with_hash(const std::string& text) const {
    return text + "sha256 " + to_string(sha256_of(*hashing_, text)) + "\n";
  }

  // How many single-bit flips and truncations of `sealed` are opened all the same.
  static int undetected_changes(const Seal& seal, const std::string& sealed) {
    int undetected = 0;
    for (std::size_t bit = 0; bit < sealed.size() * 8; ++bit) {
      std::string changed = sealed;
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
      if (seal.open(changed).ok()) ++undetected;
    }
    for (std::size_t size = 0; size < sealed.size(); ++size) {
      if (seal.open(std::string_view(sealed).substr(0, size)).ok()) ++undetected;
    }
    return undetected;
  }
};

TEST_F(SealTest, ADocumentComesBackFromItsSeal) {
  EXPECT_EQ(plain_.open(plain_.seal(text_)).value(), text_);
  EXPECT_EQ(secret_.open(secret_.seal(text_)).value(), text_);
  EXPECT_FALSE(plain_.checks_authenticity());
  EXPECT_TRUE(secret_.checks_authenticity());
}

TEST_F(SealTest, AToolWithoutTheSecretReadsADocumentThatHasAMac) {
  EXPECT_EQ(plain_.open(secret_.seal(text_)).value(), text_);
}

TEST_F(SealTest, LooksAsDocumented) {
  EXPECT_EQ(plain_.seal("{}\n"), "{}\nsha256 ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356\n");
  const std::string sealed = secret_.seal("{}\n");
  EXPECT_TRUE(sealed.starts_with("{}\nhmac-sha256 "));
  EXPECT_THAT(sealed, HasSubstr("\nsha256 "));
}

TEST_F(SealTest, FindsEveryFlippedBitAndEveryTruncation) {
  EXPECT_EQ(undetected_changes(plain_, plain_.seal(text_)), 0);
  EXPECT_EQ(undetected_changes(secret_, secret_.seal(text_)), 0);
  EXPECT_EQ(undetected_changes(plain_, secret_.seal(text_)), 0);
}

TEST_F(SealTest, RefusesWhatSomebodyWithoutTheSecretWrote) {
  const auto without_mac = secret_.open(plain_.seal(text_));
  ASSERT_FALSE(without_mac.ok());
  EXPECT_EQ(without_mac.error().code, ErrorCode::kDataLoss);
  EXPECT_THAT(without_mac.error().message, HasSubstr("no MAC"));
  const auto other_secret = secret_.open(Seal(*hashing_, "Sesame").seal(text_));
  ASSERT_FALSE(other_secret.ok());
  EXPECT_EQ(other_secret.error().code, ErrorCode::kDataLoss);
  EXPECT_THAT(other_secret.error().message, HasSubstr("does not fit the secret"));
}

TEST_F(SealTest, AMacOfOneDocumentDoesNotSealAnother) {
  const std::string sealed = secret_.seal(text_);
  const std::string mac = sealed.substr(text_.size(), sealed.find("\nsha256 ") + 1 - text_.size());
  EXPECT_TRUE(secret_.open(with_hash(text_ + mac)).ok());
  EXPECT_FALSE(secret_.open(with_hash("{}\n" + mac)).ok());
}

TEST_F(SealTest, RefusesTextsThatAreNotSealed) {
  for (const std::string& text :
       {std::string(), std::string("\n"), text_, std::string(1000, '\n'), "sha256 " + std::string(64, '0') + "\n"}) {
    const auto opened = plain_.open(text);
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code, ErrorCode::kDataLoss);
  }
}

}  // namespace
}  // namespace everstep::storage
