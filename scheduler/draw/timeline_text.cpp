#include "scheduler/draw/timeline_text.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "scheduler/schedule_summary.h"

namespace everstep::scheduler {
namespace {

constexpr int kDigits = 10;
constexpr int kLetters = 26;

// How ops of one depth are spelt.
class Alphabet {
 public:
  explicit Alphabet(int depth) : digits_(depth <= kDigits), modulus_((digits_ ? kDigits : kLetters) / depth * depth) {}

  char update() const { return digits_ ? 'U' : '#'; }
  char compute(const Op& op, int running_minibatch) const {
    const bool forward = op.kind == OpKind::kForward;
    const bool weights = op.kind == OpKind::kBackwardWeights;
    if (weights && !digits_) return '+';
    if (modulus_ == 0) return forward ? '>' : '<';
    const int index = running_minibatch % modulus_;
    if (weights) return static_cast<char>('A' + index);
    const char first = forward ? (digits_ ? '0' : 'A') : 'a';
    return static_cast<char>(first + index);
  }

 private:
  bool digits_;
  int modulus_;  // 0: too deep for names
};

// Where each slice starts in the count of minibatches that a group runs.
std::vector<int> slice_starts(const Schedule& schedule, int group) {
  std::vector<int> starts;
  int count = 0;
  for (const WindowSlice& slice : schedule.slices) {
    starts.push_back(count);
    for (int round = 0; round < schedule.rounds_in(slice); ++round) {
      count += schedule.minibatches_in(slice, round, group);
    }
  }
  return starts;
}

// Columns whose middle is before the tick.
Tick columns_before(Tick tick, Tick ticks_per_column) {
  return (tick - ticks_per_column / 2 + ticks_per_column - 1) / ticks_per_column;
}

std::string draw_row(const Schedule& schedule, int worker, const Timeline& timeline, Tick ticks_per_column,
                     int columns) {
  const Alphabet alphabet(schedule.depth());
  const std::vector<int> starts = slice_starts(schedule, schedule.group_of(worker));
  std::string row(columns, '.');
  const auto draw = [&](const Op& op, const OpSpan& span) {
    char symbol = alphabet.update();
    if (is_of_minibatch(op)) {
      // A round that is not the last is full, so the rounds before this one have the same size.
      const int before = starts[op.window - schedule.request.first_window] + op.round * schedule.placement.round_size();
      symbol = alphabet.compute(op, before + op.minibatch);
    }
    const Tick begin = std::min<Tick>(columns, columns_before(span.begin, ticks_per_column));
    const Tick end = std::min<Tick>(columns, columns_before(span.end, ticks_per_column));
    std::fill(row.begin() + begin, row.begin() + end, symbol);
  };
  for (std::size_t i = 0; i < timeline.spans[worker].size(); ++i) {
    draw(schedule.workers[worker][i], timeline.spans[worker][i]);
  }
  for (const FloatingOp& weights : timeline.weights[worker]) draw(weights.op, weights.span);
  return row;
}

// What stands under the row of a worker where windows begin on provisional weights; empty elsewhere.
std::string draw_marks(const Schedule& schedule, int worker, const Timeline& timeline, Tick ticks_per_column,
                       int columns) {
  if (schedule.request.provisional == 0) return {};
  std::string marks(columns, ' ');
  const auto fill_free = [&](Tick begin, Tick end, char symbol) {
    const Tick shown = std::min<Tick>(columns, end);
    if (begin < shown) std::replace(marks.begin() + begin, marks.begin() + shown, ' ', symbol);
  };
  // Of 'P' and 'T' neither hides the other.
  const auto mark = [&](Tick column, char symbol) {
    if (column >= columns) return;
    char& shown = marks[column];
    const bool is_marked = shown == 'P' || shown == 'T' || shown == '*';
    shown = is_marked && shown != symbol ? '*' : symbol;
  };
  const std::vector<bool> reads = provisional_reads(schedule, worker);
  Tick copied = 0;
  for (std::size_t i = 0; i < timeline.spans[worker].size(); ++i) {
    const OpKind kind = schedule.workers[worker][i].kind;
    const Tick begin = columns_before(timeline.spans[worker][i].begin, ticks_per_column);
    const Tick end = columns_before(timeline.spans[worker][i].end, ticks_per_column);
    if (kind == OpKind::kProvisional) {
      copied = begin;
      mark(copied, 'P');
    } else if (kind == OpKind::kTrialStep) {
      const Tick taken = std::max(copied, end - 1);
      fill_free(copied + 1, taken, '-');
      mark(taken, 'T');
    } else if (reads[i]) {
      fill_free(begin, end, '^');
    }
  }
  marks.resize(marks.find_last_not_of(' ') + 1);
  return marks;
}

std::string draw_axis(int columns) {
  std::string axis;
  for (int column = 0; column < columns; column += 10) {
    axis.resize(column, ' ');
    axis += std::to_string(column / 10);
  }
  return axis;
}

std::string label_of(const Schedule& schedule, int worker) {
  std::string device = "dev" + std::to_string(schedule.device_of(worker));
  if (schedule.request.width == 1) return device;
  return "group" + std::to_string(schedule.group_of(worker)) + " " + device;
}

}  // namespace

std::string draw_text(const Schedule& schedule, const Timeline& timeline, const TextDrawing& drawing) {
  EVERSTEP_CHECK(drawing.ticks_per_column > 0 && drawing.max_columns > 0, "a drawing without columns");
  const Tick wanted = columns_before(timeline.makespan, drawing.ticks_per_column);
  const int columns = static_cast<int>(std::min<Tick>(wanted, drawing.max_columns));
  const int workers = static_cast<int>(schedule.workers.size());
  std::size_t label_width = 0;
  for (int worker = 0; worker < workers; ++worker) {
    label_width = std::max(label_width, label_of(schedule, worker).size());
  }
  std::string text;
  const auto add_line = [&](std::string label, const std::string& content) {
    label.resize(label_width, ' ');
    text += label + " " + content + "\n";
  };
  add_line("t", draw_axis(columns));
  for (int worker = 0; worker < workers; ++worker) {
    add_line(label_of(schedule, worker), draw_row(schedule, worker, timeline, drawing.ticks_per_column, columns));
    const std::string marks = draw_marks(schedule, worker, timeline, drawing.ticks_per_column, columns);
    if (!marks.empty()) add_line("", marks);
  }
  if (columns < wanted) {
    text += "(cut after " + std::to_string(columns) + " of " + std::to_string(wanted) + " columns)\n";
  }
  return text;
}

}  // namespace everstep::scheduler
