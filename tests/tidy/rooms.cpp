#include "tests/tidy/rooms.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace everstep::tidy {
namespace {

using Names = std::set<std::string_view>;

constexpr auto kCore = RoomKind::kCore;
constexpr auto kAdapter = RoomKind::kAdapter;

// All but launcher, from the bottom up.
std::vector<Room> rooms_below_launcher() {
  return {
      {"base", kCore, {}},
      {"scheduler", kCore, {"base"}},
      {"scheduler/orders", kCore, {"base", "scheduler"}},
      {"scheduler/draw", kCore, {"base", "scheduler"}},
      {"storage", kCore, {"base"}},
      {"storage/hdf5", kAdapter, {"base", "storage"}},
      {"storage/json", kAdapter, {"base", "storage"}},
      {"storage/openssl", kAdapter, {"base", "storage"}},
      {"storage/posix", kAdapter, {"base", "storage"}},
      {"trainer/kernels", kCore, {}},
      {"trainer/model", kCore, {"base", "scheduler", "trainer/kernels"}},
      {"trainer/wire", kCore, {"base", "trainer/model"}},
      {"trainer/update", kCore, {"base", "scheduler", "trainer/kernels", "trainer/model", "trainer/wire"}},
      {"trainer/checkpoints", kCore, {"base", "scheduler", "storage", "trainer/model", "trainer/update"}},
      {"trainer/recovery",
       kCore,
       {"base", "scheduler", "trainer/model", "trainer/wire", "trainer/update", "trainer/checkpoints"}},
      {"trainer/loop",
       kCore,
       {"base", "scheduler", "trainer/model", "trainer/wire", "trainer/update", "trainer/checkpoints",
        "trainer/recovery"}},
      {"trainer/reference", kCore, {"base", "scheduler", "trainer/model", "trainer/update", "trainer/loop"}},
      {"trainer/cuda", kAdapter, {"base", "trainer/kernels", "trainer/model"}},
      {"trainer/data", kAdapter, {"base", "trainer/model"}},
      {"trainer/emulated", kAdapter, {"base", "trainer/model"}},
      {"trainer/nccl", kAdapter, {"base", "trainer/model", "trainer/wire"}},
      {"trainer/socket", kAdapter, {"base", "storage", "trainer/wire"}},
      {"trainer/staging", kAdapter, {"base", "trainer/model", "trainer/wire"}},
      {"trainer/threads", kAdapter, {"base", "trainer/wire", "trainer/loop"}},
      {"trainer/torch", kAdapter, {"base", "trainer/kernels", "trainer/model", "trainer/update"}},
      {"trainer/xxhash", kAdapter, {"base", "trainer/model"}},
      {"elastic", kCore, {"base", "scheduler"}},
      {"elastic/brain", kCore, {"base", "scheduler", "elastic"}},
      {"elastic/sim", kCore, {"base", "scheduler", "elastic", "elastic/brain"}},
      {"elastic/etcd", kAdapter, {"base", "elastic"}},
      {"elastic/etcd_cpp_api", kAdapter, {"base", "elastic"}},
  };
}

// Rows of launcher name rooms of launcher; all that is below it they may include anyway. Nobody includes commands but
// main.
std::vector<Room> rooms_of_launcher() {
  const Names looks = {"launcher/cli", "launcher/http", "launcher/job"};
  const auto and_also = [](Names names, const Names& more) {
    names.insert(more.begin(), more.end());
    return names;
  };
  const Names sees_all = and_also(
      looks, {"launcher/worker", "launcher/status", "launcher/supervise", "launcher/checkpoint", "launcher/proof"});
  const Names rehearsals = {"launcher/rehearse/chaos", "launcher/rehearse/trace"};
  std::vector<Room> table;
  for (const auto& [name, may_include] : std::vector<std::pair<std::string_view, Names>>{
           {"launcher/http", {}},
           {"launcher/cli", {}},
           {"launcher/job", {"launcher/cli", "launcher/http"}},
           {"launcher/worker", looks},
           {"launcher/status", looks},
           {"launcher/checkpoint", looks},
           {"launcher/supervise", and_also(looks, {"launcher/worker", "launcher/status"})},
           {"launcher/proof", and_also(looks, {"launcher/worker", "launcher/checkpoint"})},
           {"launcher/rehearse/chaos", sees_all},
           {"launcher/rehearse/trace", sees_all},
           {"launcher/doctor", and_also(sees_all, {"launcher/rehearse/chaos"})},
           {"launcher/commands", and_also(and_also(sees_all, rehearsals), {"launcher/doctor"})},
           {"launcher", and_also(and_also(sees_all, rehearsals), {"launcher/commands"})},
       }) {
    table.push_back({name, RoomKind::kShell, may_include});
    for (const Room& room : rooms_below_launcher()) table.back().may_include.insert(room.name);
  }
  return table;
}

Violation in_table(const std::string& message) { return {"tests/tidy/rooms.cpp", 0, message}; }

// Walks from room to room; a way that comes back to where it has been is a cycle.
class CycleSearch {
 public:
  explicit CycleSearch(const std::vector<Room>& table) {
    for (const Room& room : table) rooms_.emplace(room.name, &room);
  }

  Violations run() {
    for (const auto& [name, room] : rooms_) walk(*room);
    return std::move(found_);
  }

 private:
  void walk(const Room& room) {
    const auto begin = std::find(way_.begin(), way_.end(), room.name);
    if (begin != way_.end()) {
      std::string text;
      for (auto name = begin; name != way_.end(); ++name) text += std::string(*name) + " may include ";
      found_.push_back(in_table(text + std::string(room.name) +
                                ": a cycle (hint: move what both need into a room that both may include)"));
      return;
    }
    if (!done_.insert(room.name).second) return;
    way_.push_back(room.name);
    for (const std::string_view next : room.may_include) {
      if (const auto known = rooms_.find(next); known != rooms_.end()) walk(*known->second);
    }
    way_.pop_back();
  }

  std::map<std::string_view, const Room*> rooms_;
  std::vector<std::string_view> way_;
  Names done_;
  Violations found_;
};

}  // namespace

const std::vector<Room>& rooms() {
  static const std::vector<Room> table = [] {
    std::vector<Room> all = rooms_below_launcher();
    for (Room& room : rooms_of_launcher()) all.push_back(std::move(room));
    return all;
  }();
  return table;
}

const Room* room_of(const SourceFile& file) {
  const std::string_view directory = file.directory();
  for (const Room& room : rooms()) {
    const bool is_top_folder = room.name.find('/') == std::string_view::npos;
    const bool is_inside = !is_top_folder && directory.starts_with(std::string(room.name) + "/");
    if (directory == room.name || is_inside) return &room;
  }
  return nullptr;
}

Violations check_rooms(const std::vector<Room>& table) {
  Violations violations = CycleSearch(table).run();
  for (const Room& room : table) {
    for (const std::string_view name : room.may_include) {
      const auto named = std::find_if(table.begin(), table.end(), [&](const Room& one) { return one.name == name; });
      const std::string what = std::string(room.name) + " may include " + std::string(name);
      if (named == table.end()) {
        violations.push_back(in_table(what + ", which is no room (hint: give it a row)"));
      } else if (named->kind == RoomKind::kAdapter && room.kind != RoomKind::kShell) {
        violations.push_back(in_table(what + ", but only launcher may include an adapter (hint: use the abstract " +
                                      "port, and let launcher pass the adapter in)"));
      }
    }
  }
  return violations;
}

}  // namespace everstep::tidy
