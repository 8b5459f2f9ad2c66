#include "trainer/wire/byte_codec.h"

#include <utility>

#include <gtest/gtest.h>

namespace everstep::trainer {
namespace {

TEST(ByteCodec, ReadsBackWhatWasWritten) {
  WireWriter writer;
  writer.put(std::uint8_t{200});
  writer.put(std::int64_t{-5});
  writer.put_text("host");
  writer.put_text("");
  WireReader reader(writer.bytes());
  EXPECT_EQ(reader.get<std::uint8_t>(), 200);
  EXPECT_EQ(reader.get<std::int64_t>(), -5);
  EXPECT_EQ(reader.get_text(), "host");
  EXPECT_EQ(reader.get_text(), "");
  EXPECT_TRUE(reader.at_end());
}

TEST(ByteCodec, NeverReadsPastTheEnd) {
  WireWriter writer;
  writer.put(std::uint32_t{0xFFFFFFFF});  // the length of a text that is not there
  WireReader text(writer.bytes());
  EXPECT_EQ(text.get_text(), "");
  EXPECT_FALSE(text.ok());
  WireReader number(writer.bytes());
  EXPECT_EQ(number.get<std::uint64_t>(), 0U);
  EXPECT_FALSE(number.ok());
  EXPECT_EQ(number.get<std::uint8_t>(), 0) << "after a failure everything is 0, even what would fit";
  EXPECT_FALSE(number.at_end());
}

}  // namespace
}  // namespace everstep::trainer
