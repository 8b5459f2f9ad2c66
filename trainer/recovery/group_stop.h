#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/tick.h"
#include "trainer/recovery/super_rounds.h"
#include "trainer/wire/transport.h"

namespace everstep::trainer {

// A group of data parallelism that lost nobody can finish the super-rounds that it has begun of a window after a death
// in another group: inside a window its workers need each other only. They agree on the last one, and the sums of what
// they have run are kept for the next generation.

// What a worker says to the others of its group when it hears of such a death. Super-rounds as in SuperRounds.
struct GroupWord {
  bool may_keep = false;     // it runs a window from its start, on that window's weights, and has handed on no sums yet
  std::int64_t window = 0;   // that one
  std::int64_t started = 0;  // the super-round that it started last
  std::int64_t bound = 0;    // the last one that it has begun or looked ahead into: it cannot stop earlier
  Tick round_time = 0;       // how long one took lately

  bool operator==(const GroupWord&) const = default;
};

// How many super-rounds are always worth waiting for, however long they take: in each group 4·D minibatches. The group
// works meanwhile, and what it runs counts.
constexpr int rounds_worth_waiting(int depth, int round_size) { return 4 * depth / round_size; }

// After which super-round the group stops: the earliest at which all can. Nothing: it does not keep its sums, because
// somebody cannot, or because the stop lies in another window or further away than `worth_waiting` super-rounds and, as
// far as anybody can tell, than `limit`.
std::optional<std::int64_t> agreed_stop(const std::vector<GroupWord>& words, const SuperRounds& rounds,
                                        int worth_waiting, Tick limit);

// The workers of a group, this one among them, by number.
struct GroupMembers {
  int first = 0;
  int count = 1;

  std::vector<int> all() const;
};

// Tells `mine` and hears everybody's, in the order of the members.
Result<std::vector<GroupWord>> exchange_words(Transport& transport, const GroupMembers& group, FrameHeader header,
                                              const GroupWord& mine, std::chrono::milliseconds timeout);

// Instead of exchange_words(), for those who may not keep anyway: waits for nobody. Not an answer to anybody's word.
void refuse(Transport& transport, const GroupMembers& group, FrameHeader header);

// After something that the first member told all: returns there when everybody has it, elsewhere at once.
Status acknowledge(Transport& transport, const GroupMembers& group, FrameHeader header,
                   std::chrono::milliseconds timeout);

}  // namespace everstep::trainer
