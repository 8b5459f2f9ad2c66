#include "launcher/elastic/job_control.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "base/text.h"
#include "launcher/elastic/job_status.h"
#include "launcher/elastic/patient_store.h"

namespace everstep::launcher {
namespace {

constexpr std::size_t kFewestDigits = 4;
constexpr std::chrono::milliseconds kLookEvery{200};
constexpr std::chrono::milliseconds kLookDeadline{1'000};

using Members = std::vector<elastic::MemberRecord>;

Members members_of(const elastic::View& view, const elastic::Keys& keys) {
  Members members;
  for (const elastic::KeyValue* item : view.below(keys.members())) {
    auto member = elastic::parse_member(item->value);
    if (member && item->key == keys.member(member->id)) members.push_back(std::move(member).value());
  }
  return members;
}

std::string listed(const Members& members) {
  std::string all;
  for (const elastic::MemberRecord& member : members) {
    all += (all.empty() ? "" : ", ") + member.name + " (" + short_id(member.id) + ")";
  }
  return all.empty() ? "nobody" : all;
}

Status send(elastic::KvStore& store, const elastic::Txn& txn) {
  const auto reply = transact_patiently(store, txn);
  return reply ? Status() : Status(reply.error());
}

}  // namespace

Result<elastic::MemberRecord> choose_member(const elastic::View& view, const elastic::Keys& keys,
                                            const std::string& wanted) {
  const Members members = members_of(view, keys);
  Members meant;
  std::copy_if(members.begin(), members.end(), std::back_inserter(meant),
               [&](const elastic::MemberRecord& member) { return member.name == wanted; });
  if (meant.empty() && wanted.size() >= kFewestDigits) {
    std::copy_if(members.begin(), members.end(), std::back_inserter(meant),
                 [&](const elastic::MemberRecord& member) { return to_string(member.id).starts_with(wanted); });
  }
  if (meant.size() == 1) return meant.front();
  if (meant.empty()) return not_found("no worker is called '" + wanted + "'", "there is " + listed(members));
  return invalid_argument("'" + wanted + "' may be " + listed(meant), "name it by the digits of its id");
}

Status ask_to_leave(elastic::KvStore& store, const elastic::Keys& keys, const WorkerId& id, const std::string& reason) {
  const auto found = transact_patiently(store, {{}, {elastic::get(keys.member(id))}, {}});
  if (!found) return found.error();
  const Error gone = not_found("worker " + short_id(id) + " is gone");
  if (found->reads.at(0).empty()) return gone;
  const elastic::Revision created = found->reads[0].front().created;
  const auto asked = transact_patiently(
      store, {{elastic::created_at(keys.member(id), created)}, {elastic::put(keys.drain_request(id), reason)}, {}});
  if (!asked) return asked.error();
  return asked->succeeded ? Status() : Status(gone);
}

Status ask_to_stop(elastic::KvStore& store, const elastic::Keys& keys, const std::string& reason) {
  return send(store, {{}, {elastic::put(keys.stop_request(), reason)}, {}});
}

Status ask_for_workers(elastic::KvStore& store, const elastic::Keys& keys, int workers) {
  return send(store, {{}, {elastic::put(keys.scale_request(), std::to_string(workers))}, {}});
}

Status await_job(elastic::KvStore& store, const elastic::Keys& keys, const JobWait& wait) {
  const auto end = std::chrono::steady_clock::now() + wait.limit;
  while (true) {
    auto reply = store.transact({{}, {elastic::list(keys.live())}, {}}, kLookDeadline);
    if (!reply && reply.error().code == ErrorCode::kDataLoss) return reply.error();
    if (reply) {
      elastic::View view;
      view.replace(std::move(reply->reads.at(0)), reply->revision);
      if (wait.is_done(view)) return {};
    }
    if (!reply && wait.is_over()) return {};
    if (std::chrono::steady_clock::now() >= end) {
      return Error{
          ErrorCode::kDeadlineExceeded,
          wait.otherwise + " after " + number_text(std::chrono::duration<double>(wait.limit).count(), 1) + " s",
          "it was asked and may still do so"};
    }
    std::this_thread::sleep_for(kLookEvery);
  }
}

}  // namespace everstep::launcher
