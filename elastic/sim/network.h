#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/tick.h"
#include "elastic/keys.h"
#include "elastic/sim/copies.h"
#include "elastic/sim/stand_in.h"

namespace everstep::elastic::sim {

class Process;
class World;

enum class WindowStop : std::uint8_t { kNo, kHandOver, kSaveAndEnd };

// What all tell all at the end of a window.
struct ExchangeRecord {
  std::int64_t window = 0;
  Gradients gradients;
  std::vector<Consumed> consumed;
  bool is_spoilt = false;            // one of the gradients is no number
  std::optional<Position> source{};  // the first such minibatch that was run by the sender in this generation
  WindowStop stop = WindowStop::kNo;
  bool writer_is_idle = false;
};

// What somebody who holds the origin of a generation has of it.
struct MoveRecord {
  TrainingState state;
  bool has_state = false;
};

// What the workers of a group tell each other after a death in another one.
struct WordRecord {
  bool may_keep = false;
  std::int64_t version = 0;
  std::int64_t started = 0;  // the last super-round
};

// The handshake: who speaks, to whom, in which try to connect. `token` is the sender's end of the connection.
struct Hello {
  Attempt attempt;
  WorkerId from;
  WorkerId to;
  std::uint64_t token = 0;
};

struct Frame {
  enum class Kind : std::uint8_t { kMove, kExchange, kCopy, kWord, kRenewed };

  Kind kind = Kind::kExchange;
  Attempt attempt{};
  WorkerId from{};
  WorkerId to{};
  std::uint64_t token = 0;  // the receiver's end of the connection
  bool is_corrupted = false;
  std::shared_ptr<const ExchangeRecord> exchange{};
  std::shared_ptr<const MoveRecord> move{};
  std::shared_ptr<const CopyRecord> copy{};
  std::shared_ptr<const WordRecord> word{};
};

// Between workers. What is sent while a connection is cut arrives when it heals, if the receiver still wants it then;
// lifelines notice a cut after kSilence and a death at once.
class Network {
 public:
  static constexpr Tick kSilence = 2500 * 1'000'000LL;

  explicit Network(World& world) : world_(world) {}

  void send(const Hello& hello);
  void send(const Frame& frame);

  // Nothing goes from one to the other. Both notice.
  void cut(int from, int to, Tick until);
  void isolate(int process, Tick until);
  void heal();
  bool is_cut(int from, int to) const;

  // `silently`: without a closed connection that would tell.
  void on_death(const Process& process, const WorkerId& id, bool silently);

 private:
  void carry(int from, int to, const std::function<void(Process&)>& deliver);
  Tick latency();
  void notice_cut(int one, int other);

  World& world_;
  std::map<std::pair<int, int>, Tick> cuts_;  // until when
};

}  // namespace everstep::elastic::sim
