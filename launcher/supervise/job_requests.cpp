#include "launcher/supervise/job_requests.h"

#include <algorithm>
#include <utility>

#include "elastic/records.h"
#include "elastic/view.h"
#include "launcher/job/patient_store.h"
#include "launcher/status/job_control.h"

namespace everstep::launcher {
namespace {

constexpr std::chrono::milliseconds kDeadline{500};

Status status_of(const Result<elastic::TxnReply>& reply) { return reply ? Status() : Status(reply.error()); }

}  // namespace

Result<elastic::TxnReply> JobRequests::transact(const elastic::Txn& txn) {
  auto reply = store_.transact(txn, kDeadline);
  was_answered_ = reply.ok() || !is_silence(reply.error());
  return reply;
}

std::optional<int> JobRequests::next_scale() {
  const auto reply = transact({{}, {elastic::get(keys_.scale_request()), elastic::get(keys_.generation())}, {}});
  if (!reply) return std::nullopt;
  const bool is_first = !begun_under_;
  if (is_first) begun_under_ = newest_generation(reply->reads.at(1));
  if (reply->reads.at(0).empty()) return std::nullopt;
  const auto request = elastic::parse_request(reply->reads[0].front().value);
  if (!request || request->generation < *begun_under_) return std::nullopt;
  const bool is_new = scales_.insert(request->id).second;
  return is_new && !is_first ? std::optional(request->workers) : std::nullopt;
}

Status JobRequests::ask_to_stop(const std::string& reason) {
  const auto found = transact({{}, {elastic::get(keys_.generation())}, {}});
  if (!found) return found.error();
  const std::string request = to_text(new_request(found->reads.at(0), reason));
  return status_of(transact({{}, {elastic::put(keys_.stop_request(), request)}, {}}));
}

Status JobRequests::ask_to_leave(const std::string& name, const std::string& reason) {
  const auto found = transact({{}, {elastic::list(keys_.members()), elastic::get(keys_.generation())}, {}});
  if (!found) return found.error();
  for (const elastic::KeyValue& item : found->reads.at(0)) {
    const auto member = elastic::parse_member(item.value);
    if (!member || member->name != name) continue;
    const std::string request = to_text(new_request(found->reads.at(1), reason));
    // Gone meanwhile: nothing to ask for.
    const elastic::Txn ask{
        {elastic::created_at(item.key, item.created)}, {elastic::put(keys_.drain_request(member->id), request)}, {}};
    return status_of(transact(ask));
  }
  return not_found("no member is called " + name);
}

std::set<std::string> JobRequests::leavers() {
  auto reply = transact({{}, {elastic::list(keys_.live())}, {}});
  if (!reply) return {};
  elastic::View view;
  view.replace(std::move(reply->reads.at(0)), reply->revision);
  std::set<std::string> names;
  for (const elastic::KeyValue* item : view.below(keys_.members())) {
    const auto member = elastic::parse_member(item->value);
    if (!member) continue;
    const bool is_asked = view.find(keys_.drain_request(member->id)) != nullptr;
    if (is_asked || member->state == elastic::MemberState::kLeaving) names.insert(member->name);
  }
  return names;
}

std::optional<bool> JobRequests::has_others(const std::set<std::string>& names) {
  const auto members = transact({{}, {elastic::list(keys_.members())}, {}});
  if (!members) return std::nullopt;
  return std::ranges::any_of(members->reads.at(0), [&](const elastic::KeyValue& item) {
    const auto member = elastic::parse_member(item.value);
    return member && !names.contains(member->name);
  });
}

bool JobRequests::is_finished() {
  const auto reply = transact({{}, {elastic::get(keys_.finished())}, {}});
  return reply && !reply->reads.at(0).empty();
}

bool JobRequests::is_stopped() {
  const auto reply = store_.transact({{}, {elastic::get(keys_.drain())}, {}}, kDeadline);
  if (!reply || reply->reads.at(0).empty()) return false;
  const auto drain = elastic::parse_drain(reply->reads[0].front().value);
  return drain && drain->ends_job;
}

}  // namespace everstep::launcher
