#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "elastic/records.h"
#include "elastic/view.h"

namespace everstep::elastic {

// The view as records: what a coordinator decides on. Whatever cannot be read is not in it.
struct Situation {
  struct Member {
    MemberRecord record;
    Revision created = 0;
  };
  struct Quarantine {
    QuarantineRecord record;
    Revision modified = 0;
  };

  std::map<WorkerId, Member> members;
  std::optional<GenerationRecord> generation;
  Revision generation_modified = 0;
  std::optional<HeadRecord> head;
  Revision head_modified = 0;
  Revision leader_created = 0;
  std::optional<RosterRecord> proposal;
  Revision proposal_modified = 0;
  std::optional<DrainRecord> drain;  // of the present generation
  Revision drain_modified = 0;
  std::map<WorkerId, PreparedRecord> prepared;  // for the proposal
  // Of the present generation:
  std::map<WorkerId, PromiseRecord> promises;
  std::map<WorkerId, HeldRecord> held;
  std::set<WorkerId> ready;                            // workers that have made their first update
  std::set<WorkerId> handed_over;                      // donors
  std::set<std::pair<WorkerId, WorkerId>> suspicions;  // who is suspected, by whom

  std::map<std::string, Quarantine> quarantines;  // by host
  std::optional<ProgressRecord> progress;         // of the present generation
  bool stop_asked = false;
  bool is_damaged = false;  // gen or HEAD cannot be read, or is forged: nothing may be decided

  bool has(const WorkerId& id) const { return members.contains(id); }
  bool is_leaving(const WorkerId& id) const;
  // Workers of the present plan that are members, in the plan's order.
  std::vector<WorkerId> live_workers() const;
};

// One member's record as the view has it. kNotFound: it is not there.
Result<MemberRecord> read_member(const View& view, const Keys& keys, const WorkerId& id);

// Who leads. Nothing: nobody, or one that is no member, or no longer the one that it was: its record cannot be read, is
// forged, or was put there again.
std::optional<LeaderRecord> read_leader(const View& view, const Keys& keys);

Situation read_situation(const View& view, const Keys& keys);

}  // namespace everstep::elastic
