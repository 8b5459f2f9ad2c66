#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "elastic/keys.h"
#include "elastic/kv_store.h"
#include "elastic/record_seal.h"
#include "elastic/records.h"
#include "launcher/job/job_setup.h"

namespace everstep::launcher {

// "abcd0001…" for 1.
inline WorkerId numbered(std::uint64_t number) { return {0xabcd000000000000ULL + (number << 32), number}; }

// A job's keys as workers would have written them, in any store. Nobody works.
class HandWrittenJob {
 public:
  HandWrittenJob(elastic::KvStore& store, std::string name, const std::string& secret = "")
      : store_(store), name_(std::move(name)) {
    elastic::JobSpec spec;
    spec.lineage = 7;
    spec.build = "0.1.0";
    spec.settings = {{"min-workers", "2"}, {"window", "16"}};
    const auto created = create_job(store, name_, spec, secret, std::nullopt);
    EXPECT_TRUE(created) << created.error();
    if (created) seal_ = *created;
  }

  elastic::Keys keys() const { return elastic::Keys(name_); }

  // As a worker would, which knows the secret. Returns when it happened.
  elastic::Revision write(std::string key, std::string value, elastic::LeaseId lease = 0) const {
    return send({elastic::put(std::move(key), std::move(value), lease)}, seal_);
  }
  // As a stranger would.
  void forge(std::string key, std::string value) const { send({elastic::put(std::move(key), std::move(value))}, {}); }
  void remove(std::string key) const { send({elastic::remove(std::move(key))}, seal_); }
  const elastic::RecordSeal& seal() const { return seal_; }

  elastic::MemberRecord add_worker(std::uint64_t number, elastic::MemberState state = elastic::MemberState::kReady,
                                   const std::string& name = "") const {
    elastic::MemberRecord member;
    member.id = numbered(number);
    member.name = name.empty() ? "w" + std::to_string(number) : name;
    member.host = "node-" + std::to_string(number);
    member.address = "10.0.0." + std::to_string(number) + ":4711";
    member.state = state;
    if (state == elastic::MemberState::kLeaving) member.leave_reason = "SIGTERM";
    write(keys().member(member.id), to_text(member));
    return member;
  }

  // Of depth 2 and width 1, with workers 1 and 2.
  static elastic::RosterRecord pair(std::int64_t generation) {
    elastic::RosterRecord roster;
    roster.attempt = {{generation}, 5};
    roster.plan.kind = scheduler::ScheduleKind::kAmdp;
    roster.plan.depth = 2;
    roster.plan.window = 16;
    roster.plan.cuts = {0, 2, 4};
    roster.plan.workers = {numbered(1), numbered(2)};
    return roster;
  }

  void open(const elastic::RosterRecord& roster, const std::string& reason = "w2 joined") const {
    elastic::GenerationRecord record;
    record.roster = roster;
    record.opener = numbered(1);
    record.reason = reason;
    write(keys().generation(), to_text(record));
    for (const WorkerId& id : roster.plan.workers) write(keys().ready(roster.attempt, id), "yes");
  }

  // Two workers that train, the first one leading, with a HEAD.
  void train() const {
    const elastic::MemberRecord first = add_worker(1);
    add_worker(2);
    const elastic::Revision registered = replace(keys().member(first.id), to_text(first));
    write(keys().leader(), to_text(elastic::LeaderRecord{first.id, registered}));
    open(pair(3));
    elastic::HeadRecord head;
    head.sequence = 11;
    head.generation = {3};
    head.position = {1760};
    head.manifest = std::string(64, 'a');
    write(keys().head(), to_text(head));
    elastic::ProgressRecord progress{120, 1000, 3.421, 12'300, 0.87, 0.96, "training", {81'000, 79'500}};
    write(keys().progress(), to_text(progress));
  }

 private:
  elastic::Revision replace(const std::string& key, const std::string& value) const {
    remove(key);
    return write(key, value);
  }

  elastic::Revision send(std::vector<elastic::KvOp> ops, const elastic::RecordSeal& seal) const {
    const auto reply = store_.transact(seal.seal(elastic::Txn{{}, std::move(ops), {}}), std::chrono::seconds(5));
    EXPECT_TRUE(reply) << reply.error();
    return reply ? reply->revision : 0;
  }

  elastic::KvStore& store_;
  std::string name_;
  elastic::RecordSeal seal_;
};

}  // namespace everstep::launcher
