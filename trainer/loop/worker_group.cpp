// A death in another group: this one finishes what it has begun and keeps its sums.
#include <algorithm>
#include <utility>

#include "trainer/loop/worker.h"

namespace everstep::trainer {

GroupMembers Worker::group() const {
  const int depth = shape_.depth();
  return {shape_.group_of(transport_.worker()) * depth, depth};
}

bool Worker::lost_another_group() const {
  const auto lost = options_.group_stop_limit.count() > 0 ? transport_.lost() : std::nullopt;
  return lost && lost->how == LostPeer::How::kClosed && lost->worker < plan_workers() &&
         shape_.group_of(lost->worker) != shape_.group_of(transport_.worker());
}

bool Worker::has_sums_of(std::int64_t window) const {
  return options_.resume && !options_.resume->in_sums.empty() && options_.resume->in_sums.front().window == window;
}

// How long a frame may take.
std::chrono::milliseconds Worker::patience() const {
  if (!spoke_to_group_) return options_.peer_timeout;
  const std::chrono::nanoseconds left(std::max<Tick>(0, group_stop_limit_ - hooks_.now()));
  return std::chrono::ceil<std::chrono::milliseconds>(left);
}

GroupWord Worker::word_to_group() const {
  GroupWord word;
  word.window = version_.value;
  if (!stream_ || is_reducing_ || adopts_next_ || last_round_) return word;
  word.may_keep = stream_->first_minibatch_of(word.window) == 0 && !has_sums_of(word.window);
  word.started = started_;
  const auto& ahead = inputs_->furthest();
  word.bound = std::max(started_, ahead ? rounds_.number_of(*ahead) : -1);
  word.round_time = round_time_;
  return word;
}

// At a death in another group, once: agrees with the rest of this one on where to stop. What has failed with that error
// may be done again if this returns without one.
Status Worker::go_on_in_group(const Error& error) {
  if (spoke_to_group_ || !lost_another_group()) return error;
  const GroupWord mine = word_to_group();
  if (!mine.may_keep || !transport_.go_on()) return error;
  spoke_to_group_ = true;
  const Tick limit = std::chrono::nanoseconds(options_.group_stop_limit).count();
  group_stop_limit_ = hooks_.now() + limit + round_time_;  // others hear of it when the op at hand has ended
  const auto words = exchange_words(transport_, group(), job_of(options_), mine, patience());
  const int worth_waiting = rounds_worth_waiting(shape_.depth(), shape_.placement.round_size());
  const auto stop = words ? agreed_stop(*words, rounds_, worth_waiting, limit) : std::nullopt;
  if (!stop) return error;
  for (const GroupWord& word : *words) round_time_ = std::max(round_time_, word.round_time);
  group_stop_limit_ = hooks_.now() + limit + worth_waiting * round_time_;
  group_stop_ = true;
  last_round_ = *stop;
  capture_.reset();  // its sums would lack other groups'
  const SuperRounds::Place place = rounds_.place_of(*stop);
  stream_->end_after_round(place.window, place.round);
  return {};
}

void Worker::refuse_group_stop() {
  if (spoke_to_group_ || !lost_another_group() || !transport_.go_on()) return;
  constexpr std::chrono::milliseconds kLongEnough{100};
  refuse(transport_, group(), job_of(options_));
  (void)transport_.flush(kLongEnough);
}

// The group meets once more, so that nobody leaves before all have what they need.
Status Worker::end_in_group() {
  const SuperRounds::Place place = rounds_.place_of(*last_round_);
  EVERSTEP_CHECK(version_.value == place.window, "a group stops before the window's weights are in place");
  EVERSTEP_TRY(sum_in_group(place.round));
  const GroupMembers members = group();
  const auto first = capacities_.begin() + members.first;
  const UpdateRecord mine = record_of_unfinished(place.window);
  FrameHeader header = job_of(options_);
  header.window = place.window;
  const auto records = exchange_among(members.first, Channel::kSurvivors, transport_, header,
                                      {first, first + members.count}, mine, patience());
  if (!records) return records.error();
  for (const UpdateRecord& record : *records) unfinished_.finite = unfinished_.finite && record.finite;
  unfinished_.in_sums = ranges_run_by_group(place.round + 1, losses_in_order(*records));
  return acknowledge(transport_, members, header, patience());
}

// At the owners, in the order of a reduce.
Status Worker::sum_in_group(int round) {
  const auto parity = static_cast<int>(version_.value % 2);
  const int first = group().first;
  FrameHeader header = job_of(options_);
  header.kind = FrameKind::kCapturedSum;
  header.window = version_.value;
  header.round = round;
  std::vector<Buffer> staging;
  for (auto chunk = chunks_.rbegin(); chunk != chunks_.rend(); ++chunk) {
    header.stage = chunk->stage;
    const Buffer& sums = chunk->memory.gradients[parity];
    if (!owns(chunk->stage)) {
      send_in_pieces(transport_, first + shape_.placement.owner_of(chunk->stage), header, sums, Channel::kSurvivors);
      continue;
    }
    for (const int replica : shape_.placement.replicas_of(chunk->stage)) {
      if (first + replica == transport_.worker()) continue;
      fit_staging(staging, memory_, sums.size);
      PieceReceiver receiver(transport_, first + replica, header, sums, options_.accumulation, Channel::kSurvivors,
                             memory_, staging);
      EVERSTEP_TRY(receiver.finish(patience()));
    }
  }
  return {};
}

std::vector<WindowHistory> Worker::ranges_run_by_group(int rounds, const std::vector<double>& losses) const {
  std::vector<WindowHistory> ranges;
  std::vector<double> by_minibatch(static_cast<std::size_t>(options_.schedule.window));
  std::size_t next = 0;
  for (const scheduler::MinibatchRange& range :
       share_of_group(options_.schedule, shape_.group_of(transport_.worker()), rounds)) {
    for (int i = range.first; i < range.end && next < losses.size(); ++i) by_minibatch[i] = losses[next++];
    ranges.push_back(run_here(version_.value, range, by_minibatch));
  }
  EVERSTEP_CHECK(next == losses.size(), "losses of other minibatches than those that the group ran");
  return ranges;
}

}  // namespace everstep::trainer
