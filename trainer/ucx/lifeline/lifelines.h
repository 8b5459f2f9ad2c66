#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "trainer/transport.h"
#include "trainer/ucx/lifeline/file_descriptor.h"
#include "trainer/ucx/lifeline/lifeline_news.h"

namespace everstep::trainer {

// What travels on a lifeline: what kind, and which worker it is about.
struct LifelineWord {
  enum class Kind : std::uint8_t {
    kGoodbye = 'g',  // the sender leaves, which is no death
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
void send_word(const FileDescriptor& socket, const LifelineWord& word);

// One nearly idle TCP connection to every peer. One that closes without a goodbye means that the peer's process is
// gone, and the kernel tells at once. (UCX itself does not: its error handling mode crashes survivors.) A host that is
// lost cannot tell: a beat is written twice a second, and the kernel repeats it until it is answered or given up. (Its
// own probes are not repeated: one answer that is lost on the way would be a death.) Whoever learns
// of a death tells the others who it was, since a survivor that leaves because of it may be missed first. Thread-safe.
class Lifelines final : public LifelineNews {
 public:
  // `sockets[i]` leads to worker i; the own place is empty.
  explicit Lifelines(std::vector<FileDescriptor> sockets);

  // Readable when poll() has something to find.
  int descriptor() const { return events_.get(); }

  // Takes notice of what came, without blocking. The first death stays: kUnavailable, naming the worker.
  Status poll();
  // The same, until somebody has died or the time is over.
  Status wait_for_death(std::chrono::milliseconds limit);
  std::optional<LostPeer> lost() const;
  bool any_dead(const std::vector<int>& workers) const;  // as far as was noticed

  // Tells every peer that this worker takes no part any more, but lives.
  void break_off();

  // Ends all connections; without a goodbye peers take it for a death.
  void hang_up();

  // Whether a worker said goodbye or broke off.
  bool has_left(int worker) const;

  // A worker that did not and has not hung up either, or −1.
  int first_still_here() const;

  void say_goodbye() override;
  void tell_renewed() override;
  std::optional<std::chrono::steady_clock::time_point> peer_renewed_at() const override;
  std::vector<int> dead() const override;
  std::vector<int> look_for_dead() override;

 private:
  struct Peer {
    FileDescriptor socket;
    bool takes_part = true;
    bool said_goodbye = false;
    WordBytes inbox{};
    std::size_t received = 0;
  };

  void watch(const FileDescriptor& descriptor, std::uint32_t name) const;
  void beat();
  void read(int worker);
  void heard(int worker);
  void died(int worker);
  void tell_all(const LifelineWord& word);

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
