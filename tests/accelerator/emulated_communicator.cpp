#include "tests/accelerator/emulated_communicator.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <future>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"

namespace everstep::accelerator {
namespace {

using trainer::NcclOutcome;
using trainer::NcclUniqueId;
using State = NcclOutcome::State;

constexpr int kLookUpMilliseconds = 5;  // from waiting, to see an abort
constexpr std::uint64_t kMostNumbers = 1 << 20;

NcclOutcome failed(std::string why) { return {State::kFailed, std::move(why)}; }
NcclOutcome in_progress() { return {State::kInProgress, {}}; }

class Ended final : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// "/tmp/everstep-nccl-…": abstract names would end at a network namespace.
std::string path_of(const NcclUniqueId& id) {
  std::string path = (std::filesystem::temp_directory_path() / "everstep-nccl-").string();
  for (std::size_t i = 0; i < kEmulatedNameBytes; ++i) {
    const auto letter = static_cast<char>('a' + std::to_integer<int>(id[i]) % 26);
    path.push_back(letter);
  }
  EVERSTEP_CHECK(path.size() < sizeof(sockaddr_un::sun_path), "an emulated NCCL needs a shorter TMPDIR");
  return path;
}

std::atomic<int>& communicators() {
  static std::atomic<int> count{0};
  return count;
}

// Which transfers run in this process: the two ends of a communicator begin the same ones in the same order.
class Meetings {
 public:
  using Place = std::pair<const Accelerator*, StreamId>;

  void begin(const Place& place, const std::string& communicator, int rank) {
    const std::lock_guard lock(mutex_);
    running_[place] = {communicator, rank, ++begun_[communicator].at(static_cast<std::size_t>(rank))};
  }
  void end(const Place& place) {
    const std::lock_guard lock(mutex_);
    running_.erase(place);
  }
  void forget(const std::string& communicator) {
    const std::lock_guard lock(mutex_);
    begun_.erase(communicator);
  }
  bool waits(const Place& place) const {
    const std::lock_guard lock(mutex_);
    const auto found = running_.find(place);
    if (found == running_.end()) return false;
    const auto& [communicator, rank, number] = found->second;
    const auto ends = begun_.find(communicator);
    return ends == begun_.end() || ends->second.at(static_cast<std::size_t>(1 - rank)) < number;
  }

 private:
  struct Transfer {
    std::string communicator;
    int rank = 0;
    std::uint64_t number = 0;
  };
  mutable std::mutex mutex_;
  std::map<Place, Transfer> running_;
  std::map<std::string, std::array<std::uint64_t, 2>> begun_;  // by rank
};

Meetings& meetings() {
  static auto* const made = new Meetings;
  return *made;
}

}  // namespace

EmulatedCommunicator::EmulatedCommunicator(Accelerator& accelerator, const EmulatedNcclOptions& options,
                                           RunningTransfers& on_device, const NcclUniqueId& id, int rank)
    : accelerator_(accelerator),
      options_(options),
      on_device_(on_device),
      path_(path_of(id)),
      rank_(rank),
      connecting_([this] { connect(); }) {
  ++communicators();
}

EmulatedCommunicator::~EmulatedCommunicator() {
  end_kernels();
  connecting_.join();
  if (finalizing_.joinable()) finalizing_.join();
  while (is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (socket_ >= 0) ::close(socket_);
  meetings().forget(path_);
  --communicators();
}

void EmulatedCommunicator::end_kernels() {
  const std::lock_guard lock(mutex_);
  if (!is_ended_) on_device_ -= running_;
  is_ended_ = true;
}

NcclOutcome EmulatedCommunicator::revoke() {
  if (!is_connected_ || is_finalizing_) return failed("invalid usage: the communicator is in progress");
  end_kernels();
  return running_ > 0 ? in_progress() : NcclOutcome{};
}

NcclOutcome EmulatedCommunicator::state() {
  const std::lock_guard lock(mutex_);
  if (is_ended_ && running_ > 0) return in_progress();
  if (!error_.empty()) return failed(error_);
  if (!is_connected_ || (is_finalizing_ && !is_finalized_)) return in_progress();
  return {};
}

NcclOutcome EmulatedCommunicator::transfer(bool sends, void* data, std::size_t bytes, int peer, StreamId stream) {
  if (peer != 1 - rank_) return failed("invalid argument: peer");
  if (!accelerator_.is_device(data)) return failed("invalid argument: memory of the host");
  if (const NcclOutcome now = state(); !now.done()) {
    return now.failed() ? now : failed("invalid usage: the communicator is in progress");
  }
  if (is_ended_ || is_finalizing_) return failed("invalid usage: the communicator has ended");
  if (last_ && last_stream_ != stream) accelerator_.wait(stream, *last_);
  begin_one();
  auto known = std::make_shared<std::promise<World::Clocks>>();
  accelerator_.launch(
      stream, sends ? "ncclSend" : "ncclRecv", {{data, bytes, !sends}},
      [this, sends, stream, address = accelerator_.kernel_address(data), bytes, known = known->get_future().share()] {
        meetings().begin({&accelerator_, stream}, path_, rank_);
        run(sends, address, bytes, known.get());
        meetings().end({&accelerator_, stream});
        end_one();
      });
  known->set_value(world().with(accelerator_.launched_on(stream)));
  last_ = accelerator_.record(stream);
  last_stream_ = stream;
  return {};
}

NcclOutcome EmulatedCommunicator::finalize() {
  if (const NcclOutcome now = state(); !now.done()) return failed("invalid usage: the communicator is in progress");
  is_finalizing_ = true;
  finalizing_ = std::thread([this] {
    while (running_ > 0 && !is_ended_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ::shutdown(socket_, SHUT_WR);
    std::byte rest{};
    try {
      while (wait_for(POLLIN) && ::recv(socket_, &rest, 1, 0) > 0) {
      }
      is_finalized_ = true;
    } catch (const Ended&) {
    }
  });
  return in_progress();
}

void EmulatedCommunicator::connect() {
  if (!options_.connects) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(path_.begin(), path_.end(), address.sun_path);
  const auto size = static_cast<socklen_t>(sizeof address);
  const int own = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto* name = reinterpret_cast<const sockaddr*>(&address);
  if (rank_ == 0) {
    EVERSTEP_CHECK(::bind(own, name, size) == 0 && ::listen(own, 1) == 0, "an emulated NCCL cannot listen");
    pollfd poll{own, POLLIN, 0};
    while (!is_ended_ && ::poll(&poll, 1, kLookUpMilliseconds) == 0) {
    }
    if (!is_ended_) socket_ = ::accept4(own, nullptr, nullptr, SOCK_CLOEXEC);
    ::close(own);
    ::unlink(path_.c_str());
  } else {
    while (!is_ended_ && ::connect(own, name, size) != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    socket_ = own;
  }
  is_connected_ = true;
}

// On a stream of the device. A communicator that was ended lets its kernels go.
void EmulatedCommunicator::run(bool sends, std::byte* data, std::size_t bytes, const World::Clocks& known) {
  try {
    meet(sends, bytes);
    move(sends, data, bytes);
    sends ? tell(known) : hear();
  } catch (const Ended&) {
  } catch (const std::runtime_error& error) {
    const std::lock_guard lock(mutex_);
    if (error_.empty()) error_ = error.what();
  }
}

void EmulatedCommunicator::begin_one() {
  const std::lock_guard lock(mutex_);
  ++running_;
  if (!is_ended_) ++on_device_;
}

bool EmulatedCommunicator::is_running() {
  const std::lock_guard lock(mutex_);  // the last one may still have it
  return running_ > 0;
}

void EmulatedCommunicator::end_one() {
  const std::lock_guard lock(mutex_);
  --running_;
  if (!is_ended_) --on_device_;
}

// Both ends say what they are about to do before a byte moves.
void EmulatedCommunicator::meet(bool sends, std::size_t bytes) {
  std::uint64_t mine = bytes * 2 + (sends ? 1 : 0);
  std::uint64_t other = 0;
  move_number(true, mine);
  move_number(false, other);
  if (other / 2 != bytes || (other & 1) == (mine & 1)) throw std::runtime_error("send and receive do not match");
}

void EmulatedCommunicator::tell(const World::Clocks& clocks) {
  std::uint64_t count = clocks.size();
  move_number(true, count);
  for (const auto& [process, clock] : clocks) {
    std::uint64_t name = process;
    std::vector<std::uint64_t> numbers = clock.numbers();
    std::uint64_t size = numbers.size();
    move_number(true, name);
    move_number(true, size);
    move(true, reinterpret_cast<std::byte*>(numbers.data()), size * sizeof(std::uint64_t));
  }
}

void EmulatedCommunicator::hear() {
  World::Clocks clocks;
  std::uint64_t count = 0;
  move_number(false, count);
  for (; count > 0; --count) {
    std::uint64_t process = 0;
    std::uint64_t size = 0;
    move_number(false, process);
    move_number(false, size);
    EVERSTEP_CHECK(size < kMostNumbers, "an emulated NCCL reads noise");
    std::vector<std::uint64_t> numbers(size);
    move(false, reinterpret_cast<std::byte*>(numbers.data()), size * sizeof(std::uint64_t));
    clocks[process].learn(Clock::of_numbers(std::move(numbers)));
  }
  const std::lock_guard lock(heard_->mutex);
  for (const auto& [process, clock] : clocks) heard_->clocks[process].learn(clock);
}

void EmulatedCommunicator::move_number(bool sends, std::uint64_t& number) {
  move(sends, reinterpret_cast<std::byte*>(&number), sizeof number);
}

void EmulatedCommunicator::move(bool sends, std::byte* at, std::size_t bytes) {
  while (bytes > 0) {
    wait_for(sends ? POLLOUT : POLLIN);
    const ssize_t moved =
        sends ? ::send(socket_, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) : ::recv(socket_, at, bytes, MSG_DONTWAIT);
    if (moved == 0 || (moved < 0 && errno != EAGAIN)) {
      if (options_.tells_of_death) throw std::runtime_error("remote process exited or there was a network error");
      wait_for_end();
    }
    if (moved <= 0) continue;
    at += moved;
    bytes -= static_cast<std::size_t>(moved);
  }
}

bool EmulatedCommunicator::wait_for(short event) const {
  pollfd poll{socket_, event, 0};
  while (true) {
    if (is_ended_) throw Ended("ended");
    if (::poll(&poll, 1, kLookUpMilliseconds) > 0) return true;
  }
}

void EmulatedCommunicator::wait_for_end() const {
  while (!is_ended_) std::this_thread::sleep_for(std::chrono::milliseconds(kLookUpMilliseconds));
  throw Ended("ended");
}

bool waits_for_its_peer(const Accelerator& accelerator, StreamId stream) {
  return meetings().waits({&accelerator, stream});
}

int emulated_communicators() { return communicators(); }

}  // namespace everstep::accelerator
