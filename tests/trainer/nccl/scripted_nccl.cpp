#include "tests/trainer/nccl/scripted_nccl.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace everstep::trainer {
namespace {

using State = NcclOutcome::State;

}  // namespace

void ScriptedNccl::note(const std::string& name, NcclCommunicator communicator) {
  calls_.push_back(name + " " + std::to_string(at(communicator).number));
}

std::vector<std::string> ScriptedNccl::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

int ScriptedNccl::count(const std::string& name) const {
  const std::vector<std::string> all = calls();
  return static_cast<int>(
      std::count_if(all.begin(), all.end(), [&](const std::string& call) { return call.starts_with(name + " "); }));
}

int ScriptedNccl::communicators() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(communicators_.size());
}

int ScriptedNccl::events() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(events_.size());
}

int ScriptedNccl::streams() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(streams_.size());
}

void ScriptedNccl::let_abort_go() {
  const std::lock_guard lock(mutex_);
  abort_hangs = false;
  abort_may_go_.notify_all();
}

NcclOutcome ScriptedNccl::init(NcclCommunicator* communicator, const NcclUniqueId& id) {
  auto made = std::make_unique<Communicator>();
  made->number = made_++;
  made->id = id;
  made->polls = init_polls;
  ++pairs_[id].ranks;
  *communicator = made.get();
  communicators_[made.get()] = std::move(made);
  note("init", *communicator);
  return {State::kInProgress, {}};
}

NcclOutcome ScriptedNccl::state(Communicator& communicator) {
  if (communicator.broken) return {State::kFailed, "remote error"};
  const bool alone = pairs_[communicator.id].ranks < 2;
  if (!init_ends || alone || communicator.polls > 0) {
    if (!alone) --communicator.polls;
    return {State::kInProgress, {}};
  }
  communicator.launching = false;
  return {};
}

NcclOutcome ScriptedNccl::transfer(bool send, std::byte* data, std::size_t bytes, Communicator& communicator,
                                   Stream& stream) {
  note(send ? "send" : "recv", &communicator);
  if (communicator.polls > 0 || communicator.launching) return {State::kFailed, "the communicator was not ready"};
  Pair& pair = pairs_[communicator.id];
  const Flag done = std::make_shared<bool>(false);
  (send ? pair.sends : pair.receives).push_back({data, bytes, done});
  stream.last = done;
  communicator.broken = fail_transfers;
  communicator.polls = launch_polls;
  communicator.launching = launch_polls > 0;
  while (!fail_transfers && !pair.sends.empty() && !pair.receives.empty()) {
    const Transfer from = pair.sends.front();
    const Transfer to = pair.receives.front();
    pair.sends.pop_front();
    pair.receives.pop_front();
    std::memcpy(to.data, from.data, std::min(from.bytes, to.bytes));
    *from.done = *to.done = true;
  }
  return {communicator.launching ? State::kInProgress : State::kDone, {}};
}

void ScriptedNccl::give_back(NcclCommunicator communicator) { communicators_.erase(communicator); }

NcclApi ScriptedNccl::api() {
  NcclApi api;
  api.get_version = [this] { return version; };
  api.set_device = [this](int) { return has_device ? NcclOutcome{} : NcclOutcome{State::kFailed, "no such device"}; };
  api.get_unique_id = [this]() -> Result<NcclUniqueId> {
    const std::lock_guard lock(mutex_);
    NcclUniqueId id{};
    id[0] = static_cast<std::byte>(pairs_.size() + 1);
    pairs_[id];
    return id;
  };
  api.comm_init_rank = [this](NcclCommunicator* communicator, const NcclUniqueId& id, int) {
    const std::lock_guard lock(mutex_);
    return init(communicator, id);
  };
  api.comm_get_async_error = [this](NcclCommunicator communicator) {
    const std::lock_guard lock(mutex_);
    return state(at(communicator));
  };
  api.send = [this](const void* data, std::size_t bytes, int, NcclCommunicator communicator, CudaStream stream) {
    const std::lock_guard lock(mutex_);
    auto* const from = const_cast<std::byte*>(static_cast<const std::byte*>(data));
    return transfer(true, from, bytes, at(communicator), *streams_.at(stream));
  };
  api.recv = [this](void* data, std::size_t bytes, int, NcclCommunicator communicator, CudaStream stream) {
    const std::lock_guard lock(mutex_);
    return transfer(false, static_cast<std::byte*>(data), bytes, at(communicator), *streams_.at(stream));
  };
  for (const auto& [name, function] : {std::pair{"finalize", &api.comm_finalize}, {"revoke", &api.comm_revoke}}) {
    *function = [this, name = std::string(name)](NcclCommunicator communicator) {
      const std::lock_guard lock(mutex_);
      note(name, communicator);
      return NcclOutcome{};
    };
  }
  for (const auto& [name, function] : {std::pair{"destroy", &api.comm_destroy}, {"abort", &api.comm_abort}}) {
    *function = [this, name = std::string(name)](NcclCommunicator communicator) {
      std::unique_lock lock(mutex_);
      note(name, communicator);
      if (name == "abort") abort_may_go_.wait(lock, [this] { return !abort_hangs; });
      give_back(communicator);
      return NcclOutcome{};
    };
  }
  api.stream_create = [this]() -> Result<CudaStream> {
    const std::lock_guard lock(mutex_);
    auto made = std::make_unique<Stream>();
    CudaStream const stream = made.get();
    streams_[stream] = std::move(made);
    return stream;
  };
  api.stream_destroy = [this](CudaStream stream) {
    const std::lock_guard lock(mutex_);
    streams_.erase(stream);
  };
  api.event_create = [this]() -> Result<CudaEvent> {
    const std::lock_guard lock(mutex_);
    auto made = std::make_unique<Flag>();
    CudaEvent const event = made.get();
    events_[event] = std::move(made);
    return event;
  };
  api.event_destroy = [this](CudaEvent event) {
    const std::lock_guard lock(mutex_);
    events_.erase(event);
  };
  api.event_record = [this](CudaEvent event, CudaStream stream) {
    const std::lock_guard lock(mutex_);
    if (stream != nullptr) *events_.at(event) = streams_.at(stream)->last;
    return NcclOutcome{};
  };
  api.event_query = [this](CudaEvent event) {
    const std::lock_guard lock(mutex_);
    const Flag& flag = *events_.at(event);
    return NcclOutcome{flag == nullptr || *flag ? State::kDone : State::kInProgress, {}};
  };
  api.stream_wait_event = [](CudaStream, CudaEvent) { return NcclOutcome{}; };
  api.copy_on_device = [](void* to, const void* from, std::size_t bytes, CudaStream) {
    std::memcpy(to, from, bytes);
    return NcclOutcome{};
  };
  api.now = [] { return std::chrono::steady_clock::now(); };
  api.pause = [](std::chrono::microseconds time) { std::this_thread::sleep_for(time); };
  return api;
}

}  // namespace everstep::trainer
