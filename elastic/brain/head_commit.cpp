#include "elastic/brain/head_commit.h"

#include <utility>

namespace everstep::elastic {

HeadCommit::HeadCommit(const Keys& keys, Expected expected, const HeadRecord& next, const std::string& acks)
    : expected_(expected), next_(to_text(next)) {
  const std::string log = keys.past_head(next.sequence);
  txn_.compares = {modified_at(keys.generation(), expected.generation), modified_at(keys.head(), expected.head),
                   created_at(keys.leader(), expected.leader), is_absent(log)};
  txn_.then = {put(keys.head(), next_), put(log, next_)};
  if (next.sequence > kKeptHistory) txn_.then.push_back(remove(keys.past_head(next.sequence - kKeptHistory)));
  if (!acks.empty()) txn_.then.push_back(remove_prefix(acks));
  txn_.otherwise = {get(log), get(keys.head()), get(keys.generation()), get(keys.leader())};
}

HeadCommit::State HeadCommit::on_reply(const Result<TxnReply>& reply) {
  if (state_ != State::kSending) return state_;
  if (!reply) return state_ = after_error(reply.error().code);
  if (reply->succeeded) return state_ = State::kCommitted;
  const auto is_next = [&](const std::vector<KeyValue>& found) {
    return !found.empty() && found.front().value == next_;
  };
  if (is_next(reply->reads.at(0)) || is_next(reply->reads.at(1))) return state_ = State::kCommitted;
  // What was there may have been this commit.
  if (may_have_happened_ && !reply->forged.empty()) return state_ = State::kUnknown;
  const auto& generation = reply->reads.at(2);
  const auto& leader = reply->reads.at(3);
  const bool may_commit = !generation.empty() && generation.front().modified == expected_.generation &&
                          !leader.empty() && leader.front().created == expected_.leader;
  return state_ = may_commit ? State::kOutdated : State::kRefused;
}

// A refusal is about the try that it answers, not about those before.
HeadCommit::State HeadCommit::after_error(ErrorCode code) {
  const bool is_final = code == ErrorCode::kInvalidArgument || code == ErrorCode::kDataLoss;
  if (is_final) return may_have_happened_ ? State::kUnknown : State::kRefused;
  may_have_happened_ = may_have_happened_ || code == ErrorCode::kDeadlineExceeded;
  return State::kSending;
}

}  // namespace everstep::elastic
