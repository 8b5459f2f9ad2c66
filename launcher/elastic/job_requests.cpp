#include "launcher/elastic/job_requests.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "elastic/records.h"
#include "elastic/view.h"

namespace everstep::launcher {
namespace {

constexpr std::chrono::milliseconds kDeadline{500};

Status status_of(const Result<elastic::TxnReply>& reply) { return reply ? Status() : Status(reply.error()); }

}  // namespace

Result<elastic::TxnReply> JobRequests::transact(const elastic::Txn& txn) {
  auto reply = store_.transact(txn, kDeadline);
  was_answered_ = reply.ok();
  return reply;
}

std::optional<int> JobRequests::next_scale() {
  const auto reply = transact({{}, {elastic::get(keys_.scale_request())}, {}});
  if (!reply) return std::nullopt;
  const auto& found = reply->reads.at(0);
  const elastic::Revision modified = found.empty() ? 0 : found.front().modified;
  const bool is_new = seen_scale_ && modified > *seen_scale_;
  if (!seen_scale_ || is_new) seen_scale_ = modified;
  return is_new ? parse_number<int>(found.front().value) : std::nullopt;
}

Status JobRequests::ask_to_stop(const std::string& reason) {
  return status_of(transact({{}, {elastic::put(keys_.stop_request(), reason)}, {}}));
}

Status JobRequests::ask_to_leave(const std::string& name, const std::string& reason) {
  const auto members = transact({{}, {elastic::list(keys_.members())}, {}});
  if (!members) return members.error();
  for (const elastic::KeyValue& item : members->reads.at(0)) {
    const auto member = elastic::parse_member(item.value);
    if (!member || member->name != name) continue;
    // Gone meanwhile: nothing to ask for.
    const elastic::Txn ask{
        {elastic::created_at(item.key, item.created)}, {elastic::put(keys_.drain_request(member->id), reason)}, {}};
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
