#include "trainer/socket/peer_address.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace everstep::trainer {
namespace {

using testing::HasSubstr;

const TcpAddress kFour{"10.0.0.7", 4711};
const TcpAddress kSix{"fd00::7", 65535};
const UnixAddress kLocal{"2101009f-bd86-489c", "/run/user/0/everstep/port-4711.sock"};

TEST(PeerAddresses, AreWrittenForPeople) {
  EXPECT_EQ(to_text(kFour), "10.0.0.7:4711");
  EXPECT_EQ(to_text(kSix), "[fd00::7]:65535");
  EXPECT_EQ(to_text(PeerAddress{kFour, {}}), "10.0.0.7:4711");
  EXPECT_EQ(to_text(PeerAddress{{}, kLocal}), "unix=2101009f-bd86-489c/run/user/0/everstep/port-4711.sock");
  EXPECT_EQ(to_text(PeerAddress{kSix, kLocal}),
            "[fd00::7]:65535 unix=2101009f-bd86-489c/run/user/0/everstep/port-4711.sock");
}

TEST(PeerAddresses, AreReadAsTheyWereWritten) {
  UnixAddress odd = kLocal;
  odd.path = "/tmp/with spaces: and unix=marks [1]:2/x.sock";
  for (const PeerAddress& address : {PeerAddress{kFour, {}}, PeerAddress{kSix, {}}, PeerAddress{{}, kLocal},
                                     PeerAddress{kFour, kLocal}, PeerAddress{kSix, odd}, PeerAddress{{}, odd},
                                     PeerAddress{TcpAddress{"::", 1}, {}}, PeerAddress{TcpAddress{"::1", 1}, kLocal}}) {
    const auto read = parse_peer_address(to_text(address));
    ASSERT_TRUE(read) << to_text(address);
    EXPECT_EQ(*read, address);
  }
}

TEST(PeerAddresses, AnythingElseIsRefusedByName) {
  for (const char* text : {"",
                           " ",
                           "nonsense",
                           "10.0.0.7",
                           "10.0.0.7:",
                           "10.0.0.7:0",
                           "10.0.0.7:70000",
                           "10.0.0.7:1x",
                           "10.0.0.7:01",
                           "10.0.0.7:-1",
                           "10.0.0.7:+1",
                           "10.0.0.7: 1",
                           " 10.0.0.7:1",
                           "10.0.0.7:1 ",
                           "10.0.0.7:1\n",
                           "010.0.0.7:1",
                           "10.0.0.7.:1",
                           "localhost:1",
                           "::1:5",
                           "[::1]",
                           "[::1]:",
                           "[::1]:0",
                           "[10.0.0.7]:1",
                           "[fd00::7%eth0]:1",
                           "[[::1]]:1",
                           "unix=",
                           "unix=/run/x.sock",
                           "unix=boot",
                           "unix=bootrun",
                           "10.0.0.7:1unix=boot/x",
                           "10.0.0.7:1  unix=boot/x",
                           "10.0.0.7:1 unix=",
                           "10.0.0.7:1 unix=/x",
                           "x unix=boot/x",
                           " unix=boot/x",
                           "10.0.0.7:1 10.0.0.8:1"}) {
    const auto address = parse_peer_address(text);
    ASSERT_FALSE(address) << "'" << text << "'";
    EXPECT_EQ(address.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(address.error().message, HasSubstr("'" + std::string(text) + "'"));
  }
}

TEST(PeerAddresses, AreShownWithoutWhatOnlyWorkersNeed) {
  EXPECT_EQ(shown_address("10.0.0.7:4711 unix=boot/run/x.sock"), "10.0.0.7:4711");
  EXPECT_EQ(shown_address("[fd00::7]:4711"), "[fd00::7]:4711");
  EXPECT_EQ(shown_address("unix=boot/run/x.sock"), "this host only");
  EXPECT_EQ(shown_address("what an older worker wrote"), "what an older worker wrote");
}

}  // namespace
}  // namespace everstep::trainer
