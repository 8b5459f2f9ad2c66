#include "launcher/status/job_control.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "base/text.h"
#include "launcher/job/lineage.h"
#include "launcher/job/patient_store.h"
#include "launcher/status/job_status.h"

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

Status ask(elastic::KvStore& store, const elastic::Keys& keys, const std::string& key, const std::string& reason,
           int workers = 0) {
  const auto found = transact_patiently(store, {{}, {elastic::get(keys.generation())}, {}});
  if (!found) return found.error();
  elastic::RequestRecord request = new_request(found->reads.at(0), reason);
  request.workers = workers;
  const auto reply = transact_patiently(store, {{}, {elastic::put(key, to_text(request))}, {}});
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

Generation newest_generation(const std::vector<elastic::KeyValue>& found) {
  if (found.empty()) return {};
  const auto record = elastic::parse_generation(found.front().value);
  return record ? record->roster.attempt.generation : Generation{};
}

elastic::RequestRecord new_request(const std::vector<elastic::KeyValue>& generation, const std::string& reason) {
  elastic::RequestRecord request;
  request.id = random_lineage();
  request.reason = reason;
  request.generation = newest_generation(generation);
  return request;
}

Status ask_to_leave(elastic::KvStore& store, const elastic::Keys& keys, const WorkerId& id, const std::string& reason) {
  const auto found =
      transact_patiently(store, {{}, {elastic::get(keys.member(id)), elastic::get(keys.generation())}, {}});
  if (!found) return found.error();
  const Error gone = not_found("worker " + short_id(id) + " is gone");
  if (found->reads.at(0).empty()) return gone;
  const elastic::Revision created = found->reads[0].front().created;
  const std::string request = to_text(new_request(found->reads.at(1), reason));
  const auto asked = transact_patiently(
      store, {{elastic::created_at(keys.member(id), created)}, {elastic::put(keys.drain_request(id), request)}, {}});
  if (!asked) return asked.error();
  return asked->succeeded ? Status() : Status(gone);
}

Status ask_to_stop(elastic::KvStore& store, const elastic::Keys& keys, const std::string& reason) {
  return ask(store, keys, keys.stop_request(), reason);
}

Status ask_for_workers(elastic::KvStore& store, const elastic::Keys& keys, int workers) {
  return ask(store, keys, keys.scale_request(), "everstep scale", workers);
}

Status await_job(elastic::KvStore& store, const elastic::Keys& keys, const JobWait& wait) {
  const auto end = std::chrono::steady_clock::now() + wait.limit;
  while (true) {
    auto reply = store.transact({{}, {elastic::list(keys.live())}, {}}, kLookDeadline);
    if (!reply && reply.error().code == ErrorCode::kDataLoss) return reply.error();
    if (reply) {
      elastic::View view;
      view.replace(std::move(reply->reads.at(0)), reply->revision, std::move(reply->forged));
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
