#include "elastic/head_commit.h"

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
  txn_.otherwise = {get(log), get(keys.generation()), get(keys.leader())};
}

HeadCommit::State HeadCommit::on_reply(const Result<TxnReply>& reply) {
  if (state_ != State::kSending) return state_;
  if (!reply) {
    const bool never = reply.error().code == ErrorCode::kInvalidArgument || reply.error().code == ErrorCode::kDataLoss;
    return never ? state_ = State::kRefused : state_;
  }
  if (reply->succeeded) return state_ = State::kCommitted;
  const auto& log = reply->reads.at(0);
  if (!log.empty() && log.front().value == next_) return state_ = State::kCommitted;
  const auto& generation = reply->reads.at(1);
  const auto& leader = reply->reads.at(2);
  const bool may_commit = !generation.empty() && generation.front().modified == expected_.generation &&
                          !leader.empty() && leader.front().created == expected_.leader;
  return state_ = may_commit ? State::kOutdated : State::kRefused;
}

}  // namespace everstep::elastic
