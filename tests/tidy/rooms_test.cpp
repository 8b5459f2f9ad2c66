#include "tests/tidy/rooms.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>

namespace everstep::tidy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> complaints(const std::vector<Room>& table) {
  std::vector<std::string> messages;
  for (const Violation& violation : check_rooms(table)) messages.push_back(violation.message);
  return messages;
}

std::string_view name_of_room(const std::string& path) {
  const Room* room = room_of({path, {}});
  return room == nullptr ? "none" : room->name;
}

TEST(Rooms, OfTheTableAreInOrder) { EXPECT_THAT(complaints(rooms()), IsEmpty()); }

TEST(Rooms, OfTheTableAreAllThere) {
  const auto files = read_tree(EVERSTEP_SOURCE_DIR);
  for (const Room& room : rooms()) {
    EXPECT_TRUE(std::any_of(files.begin(), files.end(),
                            [&](const SourceFile& file) { return file.is_cpp() && room_of(file) == &room; }))
        << room.name << " has no file";
  }
}

TEST(Rooms, AreFoundByFolder) {
  EXPECT_EQ(name_of_room("base/ids.h"), "base");
  EXPECT_EQ(name_of_room("trainer/loop/worker.cpp"), "trainer/loop");
  EXPECT_EQ(name_of_room("trainer/socket/tls/tls_stream.h"), "trainer/socket");
  EXPECT_EQ(name_of_room("elastic/etcd_cpp_api/api_store.cpp"), "elastic/etcd_cpp_api");
  EXPECT_EQ(name_of_room("launcher/rehearse/chaos/fault.cpp"), "launcher/rehearse/chaos");
  EXPECT_EQ(name_of_room("launcher/main.cpp"), "launcher");
}

TEST(Rooms, AreNotMadeByMakingAFolder) {
  EXPECT_EQ(name_of_room("launcher/misc/a.h"), "none");
  EXPECT_EQ(name_of_room("trainer/a.h"), "none");
  EXPECT_EQ(name_of_room("trainer/looping/a.h"), "none");
  EXPECT_EQ(name_of_room("tests/base/ids_test.cpp"), "none");
}

TEST(Rooms, ThatMayIncludeEachOtherAreRefused) {
  EXPECT_THAT(complaints({{"a", RoomKind::kCore, {"b"}}, {"b", RoomKind::kCore, {"a"}}}),
              ElementsAre("a may include b may include a: a cycle (hint: move what both need into a room that both "
                          "may include)"));
}

TEST(Rooms, ThatIncludeEachOtherByWayOfOthersAreRefused) {
  const std::vector<Room> table{{"a", RoomKind::kCore, {}},
                                {"b", RoomKind::kCore, {"a", "d"}},
                                {"c", RoomKind::kCore, {"a", "b"}},
                                {"d", RoomKind::kCore, {"c"}}};
  EXPECT_THAT(complaints(table), ElementsAre("b may include d may include c may include b: a cycle (hint: move what "
                                             "both need into a room that both may include)"));
}

// Each arrow of the real table, turned round, closes a cycle: none of them can be added by mistake.
TEST(Rooms, OfTheTableAllowNoArrowBack) {
  for (const Room& room : rooms()) {
    for (const std::string_view included : room.may_include) {
      std::vector<Room> changed = rooms();
      std::find_if(changed.begin(), changed.end(), [&](const Room& one) {
        return one.name == included;
      })->may_include.insert(room.name);
      EXPECT_THAT(check_rooms(changed), Not(IsEmpty())) << included << " includes " << room.name;
    }
  }
}

TEST(Rooms, MayIncludeNoneThatIsUnknown) {
  EXPECT_THAT(complaints({{"a", RoomKind::kCore, {"b"}}}),
              ElementsAre("a may include b, which is no room (hint: give it a row)"));
}

TEST(Rooms, OfACoreAreNeverGivenAnAdapter) {
  EXPECT_THAT(complaints({{"disk", RoomKind::kAdapter, {}}, {"core", RoomKind::kCore, {"disk"}}}),
              ElementsAre("core may include disk, but only launcher may include an adapter (hint: use the abstract "
                          "port, and let launcher pass the adapter in)"));
  EXPECT_THAT(complaints({{"disk", RoomKind::kAdapter, {}}, {"launcher", RoomKind::kShell, {"disk"}}}), IsEmpty());
}

}  // namespace
}  // namespace everstep::tidy
