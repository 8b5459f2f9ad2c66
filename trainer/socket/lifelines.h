#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "trainer/socket/byte_stream.h"
#include "trainer/socket/closing_streams.h"
#include "trainer/socket/file_descriptor.h"
#include "trainer/wire/lifeline_news.h"
#include "trainer/wire/transport.h"

namespace everstep::trainer {

// What travels on a lifeline: what kind, and which worker it is about.
struct LifelineWord {
  enum class Kind : std::uint8_t {
    kGoodbye = 'g',  // the sender leaves, which is no death
    kGaveUp = 'u',   // the sender gives the try to connect up, and lives
    kBreak = 'b',    // the sender takes no part any more, but its end would be a death
    kDeath = 'd',    // that worker died
    kRenewed = 'r',  // the sender could renew its lease
    kBeat = 'a',     // nothing: only the receiver's kernel answers
  };

  Kind kind = Kind::kGoodbye;
  int about = 0;
};
inline constexpr std::size_t kWordBytes = 3;
using WordBytes = std::array<std::byte, kWordBytes>;

WordBytes encode_word(const LifelineWord& word);
std::optional<LifelineWord> decode_word(const WordBytes& bytes, int workers);

// Without blocking; who cannot be told is dead or has left.
void send_word(ByteStream& lifeline, const LifelineWord& word);

// The next word, if it is there. `received` counts the bytes of it that came before.
struct WordInbox {
  WordBytes bytes{};
  std::size_t received = 0;

  // kMoved: `bytes` is a whole word.
  StreamResult read(ByteStream& lifeline);
};

// The end of a lifeline at which this worker is.
struct LifelineToPeer {
  std::unique_ptr<ByteStream> stream;  // none: the own place
  bool said_goodbye = false;           // the peer, already
};

// One nearly idle connection to every peer, which is always read. One that closes without a goodbye means that the
// peer's process is gone, and the kernel tells at once. A host that is lost cannot tell: a beat is written twice a
// second, and the kernel repeats it until it is answered or given up. (Its own probes are not repeated: one answer that
// is lost on the way would be a death.) Whoever learns of a death tells the others who it was, since a survivor that
// leaves because of it may be missed first. Thread-safe.
class Lifelines final : public LifelineNews {
 public:
  // `lifelines[i]` leads to worker i.
  Lifelines(std::vector<LifelineToPeer> lifelines, std::shared_ptr<ClosingStreams> closing);
  ~Lifelines() override;
  Lifelines(const Lifelines&) = delete;
  Lifelines& operator=(const Lifelines&) = delete;

  // Readable when poll() has something to find.
  int descriptor() const { return events_.get(); }

  // Takes notice of what came, without blocking. The first death stays: kUnavailable, naming the worker.
  Status poll();
  std::optional<LostPeer> lost() const;
  bool any_dead(const std::vector<int>& workers) const;  // as far as was noticed

  // Tells every peer that this worker takes no part any more, but lives.
  void break_off();

  // Ends all connections; without a goodbye peers take it for a death.
  void hang_up();

  // Whether a worker said goodbye or broke off.
  bool has_left(int worker) const;

  // A worker that gave the try to connect up, if there is one.
  std::optional<int> first_that_gave_up() const;

  // A worker that did not and has not hung up either, or −1.
  int first_still_here() const;

  void say_goodbye() override;
  void give_up() override;
  void tell_renewed() override;
  std::optional<std::chrono::steady_clock::time_point> peer_renewed_at() const override;
  std::vector<int> dead() const override;
  std::vector<int> look_for_dead() override;

 private:
  struct Peer {
    std::unique_ptr<ByteStream> stream;  // none: it has hung up
    bool takes_part = true;
    bool said_goodbye = false;
    bool gave_up = false;
    WordInbox inbox{};
  };

  void watch(int descriptor, std::uint32_t name) const;
  void beat();
  void read(int worker);
  void heard(int worker);
  void died(int worker);
  void tell_all(const LifelineWord& word);

  const std::shared_ptr<ClosingStreams> closing_;
  FileDescriptor events_;
  FileDescriptor beats_;  // when the next is due

  mutable std::mutex mutex_;  // guards all below
  std::vector<Peer> peers_;
  std::optional<Error> error_;
  std::optional<LostPeer> lost_;
  std::set<int> dead_;
  std::optional<std::chrono::steady_clock::time_point> peer_renewed_at_;
};

}  // namespace everstep::trainer
