#include "trainer/nccl/nccl_mesh.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <thread>
#include <utility>

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kMeshPoll = 1ms;

// What each worker tells each other one.
struct Hello {
  std::int32_t version = 0;     // of NCCL; 0: there is none
  std::int32_t is_tried = 0;    // whether these two shall have links
  NcclUniqueId id{};            // of the communicator in which the one who says it sends to the other
  std::array<char, 512> why{};  // there is no NCCL, or no id
};

std::string text_of(const Hello& hello) {
  return {hello.why.begin(), std::find(hello.why.begin(), hello.why.end(), '\0')};
}

void set_text(Hello& hello, const std::string& why) {
  std::copy_n(why.begin(), std::min(why.size(), hello.why.size()), hello.why.begin());
}

template <typename Word>
Buffer to_buffer(const Word& word) {
  Buffer buffer = allocate_scratch(sizeof(Word));
  std::memcpy(buffer.data, &word, sizeof(Word));
  return buffer;
}

class MeshMaking {
 public:
  MeshMaking(std::shared_ptr<NcclDevice> device, Transport& host, const NcclMeshRequest& request)
      : device_(std::move(device)),
        host_(host),
        request_(request),
        deadline_(Clock::now() + request.timeout),
        mesh_(std::make_unique<NcclMesh>(device_)) {}

  Result<std::unique_ptr<NcclMesh>> run() {
    EVERSTEP_TRY(exchange_hellos());
    if (!all_have_it()) return std::move(mesh_);  // as all others do now
    deadline_ = Clock::now() + request_.timeout;  // the time that a late worker took is not NCCL's
    open_all();
    EVERSTEP_TRY(make_communicators());
    EVERSTEP_TRY(make_first_transfers());
    EVERSTEP_TRY(agree());
    return std::move(mesh_);
  }

 private:
  struct Waiting {
    int peer = 0;
    ReceiveId receive = 0;
    Buffer into;
  };

  int version() const { return device_ == nullptr ? 0 : device_->api().get_version(); }

  void give_up(int peer, const std::string& why) {
    mesh_->drop(peer);
    request_.on_missing(peer, why);
  }

  FrameHeader header(std::size_t length) const {
    FrameHeader header;
    header.lineage = request_.lineage;
    header.generation = request_.generation;
    header.kind = FrameKind::kNccl;
    header.length = length;
    return header;
  }

  template <typename Word>
  void say(int peer, const Word& word) {
    host_.send(peer, Channel::kCredits, header(sizeof(Word)), to_buffer(word));
  }

  // Everybody answers all that is asked, whether it has links or not.
  template <typename Word, typename Take>
  Status hear_all(const std::vector<int>& workers, Take take) {
    std::vector<Waiting> waiting;
    for (const int peer : workers) {
      const Buffer into = allocate_scratch(sizeof(Word));
      waiting.push_back({peer, host_.post_receive(peer, Channel::kCredits, header(sizeof(Word)), into), into});
    }
    for (const Waiting& one : waiting) {
      EVERSTEP_TRY(wait_until([&] { return host_.ready(one.receive); }));
      EVERSTEP_TRY(host_.wait(one.receive, 0ms));
      Word word{};
      std::memcpy(&word, one.into.data, sizeof(Word));
      EVERSTEP_TRY(take(one.peer, word));
    }
    return {};
  }

  // Peers may be late by all the time that they have, too.
  template <typename Condition>
  Status wait_until(Condition condition) {
    const auto deadline = deadline_ + request_.timeout;
    while (!condition()) {
      EVERSTEP_TRY(look());
      if (Clock::now() > deadline) {
        return Error{ErrorCode::kDeadlineExceeded, "a peer did not say whether it has NCCL", ""};
      }
      std::this_thread::sleep_for(kMeshPoll);
    }
    return {};
  }

  Status look() {
    if (!request_.is_wanted()) return Error{ErrorCode::kCancelled, "the connection is not wanted any more", ""};
    return host_.status();
  }

  Status exchange_hellos() {
    std::vector<int> others;
    for (int other = 0; other < request_.workers; ++other) {
      if (other == host_.worker()) continue;
      others.push_back(other);
      say(other, said_.emplace(other, hello_to(other)).first->second);
    }
    return hear_all<Hello>(others, [&](int other, const Hello& hello) -> Status {
      heard_.emplace(other, hello);
      return {};
    });
  }

  Hello hello_to(int other) {
    Hello hello;
    hello.version = version();
    if (device_ == nullptr) set_text(hello, request_.why_none);
    const bool is_peer = std::find(request_.peers.begin(), request_.peers.end(), other) != request_.peers.end();
    if (device_ == nullptr || !is_peer || request_.unreachable.contains(other)) return hello;
    const auto id = device_->api().get_unique_id();
    hello.is_tried = id ? 1 : 0;
    if (id) {
      hello.id = *id;
    } else {
      set_text(hello, id.error().message);
    }
    return hello;
  }

  // All workers have heard the same.
  bool all_have_it() {
    bool all = true;
    const auto without = [&](int worker, const std::string& why) {
      all = false;
      request_.on_without(worker, why);
    };
    const int mine = version();
    if (mine == 0) without(host_.worker(), request_.why_none);
    for (const auto& [other, hello] : heard_) {
      if (hello.version == 0) {
        without(other, text_of(hello));
      } else if (mine != 0 && hello.version != mine) {
        without(other, "it has NCCL " + std::to_string(hello.version) + ", and this worker " + std::to_string(mine));
      }
    }
    return all;
  }

  void open_all() {
    for (const int peer : request_.peers) {
      const Hello& said = said_.at(peer);
      const Hello& heard = heard_.at(peer);
      if (said.is_tried == 0) {
        const std::string why = text_of(said);
        request_.on_missing(peer, why.empty() ? "NCCL did not connect before" : why);
      } else if (heard.is_tried == 0) {
        const std::string why = text_of(heard);
        request_.on_missing(peer, why.empty() ? "that worker does not reach this one" : "that worker said: " + why);
      } else {
        open(peer, said.id, heard.id);
      }
    }
  }

  void open(int peer, const NcclUniqueId& own, const NcclUniqueId& of_peer) {
    NcclMesh::Pair& pair = mesh_->add(peer);
    Status opened = pair.out.open(own);
    if (opened) opened = pair.in.open(of_peer);
    if (!opened) give_up(peer, opened.error().message);
  }

  // Until `step` is true for each pair, or it fails, or time is up.
  template <typename Step>
  Status advance_all(Step step) {
    std::set<int> waiting;
    for (const int peer : mesh_->peers()) waiting.insert(peer);
    while (!waiting.empty()) {
      EVERSTEP_TRY(look());
      for (auto each = waiting.begin(); each != waiting.end();) {
        const int peer = *each;
        const Result<bool> done = step(peer, *mesh_->with(peer));
        if (!done) give_up(peer, done.error().message);
        each = !done || *done ? waiting.erase(each) : std::next(each);
      }
      if (waiting.empty()) break;
      if (Clock::now() > deadline_) {
        for (const int peer : waiting) {
          give_up(peer, "NCCL did not connect in time");
          request_.on_unreachable(peer);
        }
        break;
      }
      std::this_thread::sleep_for(kMeshPoll);
    }
    return {};
  }

  Status make_communicators() {
    return advance_all([](int, NcclMesh::Pair& pair) -> Result<bool> {
      auto out = pair.out.is_made();
      if (!out || !*out) return out;
      return pair.in.is_made();
    });
  }

  // In each direction one after the other, sends in the order of their receivers, receives in that of their senders. Of
  // the first transfers that are not over, that of the first sender to its first receiver waits for nobody.
  Status make_first_transfers() {
    if (mesh_->peers().empty()) return {};
    return advance_all([this](int peer, NcclMesh::Pair& pair) -> Result<bool> {
      bool all = true;
      for (Direction& direction : directions_) {
        const auto over = advance_first(direction, peer, pair.*direction.link);
        if (!over) return over.error();
        all = all && *over;
      }
      return all;
    });
  }

  struct Direction {
    NcclLink NcclMesh::Pair::*link;
    std::optional<int> at_work{};
    std::set<int> over{};
  };

  Result<bool> advance_first(Direction& direction, int peer, NcclLink& link) {
    if (direction.over.contains(peer)) return true;
    if (direction.at_work && mesh_->with(*direction.at_work) == nullptr) direction.at_work.reset();
    if (direction.at_work && *direction.at_work != peer) return false;
    direction.at_work = peer;
    if (link.is_idle()) {
      const auto lane = device_->take(NcclLaneUse::kFirst);
      if (!lane) return lane.error();
      if (!*lane) return false;
      EVERSTEP_TRY(link.launch_first(**lane));
    }
    auto flight = link.advance();
    if (!flight) return flight.error();
    if (!*flight) return false;
    device_->api().event_destroy((*flight)->over);
    device_->give_back((*flight)->use, (*flight)->lane);
    direction.at_work.reset();
    direction.over.insert(peer);
    return true;
  }

  Status agree() {
    for (const int peer : request_.peers) say(peer, static_cast<std::int32_t>(mesh_->with(peer) != nullptr));
    return hear_all<std::int32_t>(request_.peers, [&](int peer, std::int32_t has_links) -> Status {
      if (has_links == 0 && mesh_->with(peer) != nullptr) give_up(peer, "that worker could not connect");
      return {};
    });
  }

  const std::shared_ptr<NcclDevice> device_;
  Transport& host_;
  const NcclMeshRequest& request_;
  Clock::time_point deadline_;  // of hellos, then of NCCL
  std::unique_ptr<NcclMesh> mesh_;
  std::map<int, Hello> said_;  // by worker
  std::map<int, Hello> heard_;
  std::array<Direction, 2> directions_{Direction{&NcclMesh::Pair::out}, Direction{&NcclMesh::Pair::in}};
};

}  // namespace

NcclMesh::Pair* NcclMesh::with(int peer) {
  const auto found = pairs_.find(peer);
  return found == pairs_.end() ? nullptr : found->second.get();
}

std::vector<int> NcclMesh::peers() const {
  std::vector<int> peers;
  for (const auto& [peer, pair] : pairs_) peers.push_back(peer);
  return peers;
}

NcclMesh::Pair& NcclMesh::add(int peer) {
  return *pairs_.emplace(peer, std::make_unique<Pair>(*device_)).first->second;
}

void NcclMesh::drop(int peer) { pairs_.erase(peer); }

std::vector<NcclRemains> NcclMesh::take(int peer) {
  const auto pair = pairs_.extract(peer);
  if (pair.empty()) return {};
  std::vector<NcclRemains> remains;
  remains.push_back(pair.mapped()->out.take());
  remains.push_back(pair.mapped()->in.take());
  return remains;
}

void NcclMesh::end(NcclDevice::How how) {
  std::vector<NcclRemains> remains;
  bool is_idle = true;
  for (auto& [peer, pair] : pairs_) {
    is_idle = is_idle && pair->out.is_idle() && pair->in.is_idle();
    remains.push_back(pair->out.take());
    remains.push_back(pair->in.take());
  }
  pairs_.clear();
  if (device_ != nullptr) device_->end(std::move(remains), is_idle ? how : NcclDevice::How::kAtOnce);
}

Result<std::unique_ptr<NcclMesh>> connect_nccl(std::shared_ptr<NcclDevice> device, Transport& host,
                                               const NcclMeshRequest& request) {
  if (device != nullptr) device->enter_thread();
  return MeshMaking(std::move(device), host, request).run();
}

std::vector<int> nccl_peers(int worker, int depth, int width) {
  std::vector<int> peers;
  for (int peer = 0; peer < depth * width; ++peer) {
    const bool is_near = peer / depth == worker / depth || peer % depth == worker % depth;
    if (peer != worker && is_near) peers.push_back(peer);
  }
  return peers;
}

}  // namespace everstep::trainer
