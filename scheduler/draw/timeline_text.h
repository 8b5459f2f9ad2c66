#pragma once

#include <string>

#include "base/tick.h"
#include "scheduler/schedule.h"
#include "scheduler/timeline.h"

namespace everstep::scheduler {

struct TextDrawing {
  Tick ticks_per_column = 1;  // a column shows what runs in its middle, so shorter ops may be passed over
  int max_columns = 160;
};

// The timeline in characters, one row per worker under an axis that counts columns in tens:
//
//   t    0         1
//   dev0 02.1bb3dd.aa46cc
//   dev1 .0123.bbaaddcc45
//
// A digit is a forward and a letter a backward of the same minibatch (0 and a, 1 and b, …), repeated over its length;
// where backwards are split, the capital letter is what is left of one (0, a and A, …). 'U' is an update and '.'
// waiting. Names run on through rounds and windows and start again after the largest multiple of the depth that is at
// most 10. Deeper pipelines have capital letters for forwards, small ones for backwards and '#' for updates, and '+'
// for what is left of a split backward; beyond depth 26 all forwards are '>' and all backwards '<'. Updates without a
// cost do not show. With provisional steps each worker has a second row: 'P' where it copies the sum of one of its
// chunks, 'T' where it stops waiting for its own part of the trial step, '*' where it does both, and '^' under what
// reads provisional weights. '-' is between the last 'P' and a 'T' that is not in the next column. What exceeds
// `max_columns` is cut, and a last line says how much that is. Ends with a newline.
std::string draw_text(const Schedule& schedule, const Timeline& timeline, const TextDrawing& drawing = {});

}  // namespace everstep::scheduler
