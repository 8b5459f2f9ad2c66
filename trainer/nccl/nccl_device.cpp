#include "trainer/nccl/nccl_device.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;

constexpr auto kEndingPoll = 1ms;

}  // namespace

Status check_nccl(const NcclOutcome& outcome, const char* what) {
  if (!outcome.failed()) return {};
  return Error{ErrorCode::kUnavailable, std::string("NCCL: ") + what + " failed: " + outcome.error,
               "a peer's death or a broken network looks like this"};
}

Result<std::shared_ptr<NcclDevice>> NcclDevice::open(NcclApi api, NcclDeviceOptions options) {
  if (const NcclOutcome device = api.set_device(options.device); device.failed()) {
    return not_found("cannot use GPU " + std::to_string(options.device) + ": " + device.error,
                     "nvidia-smi lists the GPUs");
  }
  auto made = std::make_shared<NcclDevice>(std::move(api), std::move(options));
  for (const NcclLaneUse use : {NcclLaneUse::kSend, NcclLaneUse::kReceive, NcclLaneUse::kFirst}) {
    const int wanted = use == NcclLaneUse::kFirst ? 2 : made->options_.lanes;
    for (int i = 0; i < wanted; ++i) {
      const auto lane = made->make_lane(use);
      if (!lane) return lane.error();
      made->idle_[static_cast<std::size_t>(use)].push_back(*lane);
    }
  }
  return made;
}

NcclDevice::NcclDevice(NcclApi api, NcclDeviceOptions options) : api_(std::move(api)), options_(std::move(options)) {}

NcclDevice::~NcclDevice() {
  for (Ending& ending : endings_) {
    ending.worker.join();
    ending.watch.join();
  }
}

void NcclDevice::enter_thread() const { static_cast<void>(api_.set_device(options_.device)); }

Result<NcclLane> NcclDevice::make_lane(NcclLaneUse use) const {
  const auto stream = api_.stream_create();
  if (!stream) return stream.error();
  if (use != NcclLaneUse::kFirst) return NcclLane{*stream};
  const auto scratch = api_.allocate(kNcclScratchBytes, *stream);
  if (!scratch) return scratch.error();
  return NcclLane{*stream, *scratch};
}

Result<std::optional<NcclLane>> NcclDevice::take(NcclLaneUse use) {
  const std::lock_guard lock(mutex_);
  if (freeing_ > 0 || (wait_to_free_ > 0 && use == NcclLaneUse::kReceive)) return std::optional<NcclLane>();
  std::vector<NcclLane>& idle = idle_[static_cast<std::size_t>(use)];
  if (idle.empty()) {
    if (use != NcclLaneUse::kFirst) return std::optional<NcclLane>();
    auto made = make_lane(use);
    if (!made) return made.error();
    idle.push_back(*made);
  }
  const NcclLane lane = idle.back();
  idle.pop_back();
  ++at_work_;
  return std::optional(lane);
}

void NcclDevice::give_back(NcclLaneUse use, const NcclLane& lane) {
  const std::lock_guard lock(mutex_);
  idle_[static_cast<std::size_t>(use)].push_back(lane);
  --at_work_;
  changed_.notify_all();
}

Result<CudaEvent> NcclDevice::event_on(CudaStream stream) const {
  const auto event = api_.event_create();
  if (!event) return event.error();
  if (const Status recorded = check_nccl(api_.event_record(*event, stream), "recording an event"); !recorded) {
    api_.event_destroy(*event);
    return recorded.error();
  }
  return *event;
}

NcclDevice::Ended NcclDevice::start_end(std::vector<NcclRemains> remains, How how) {
  join_ended();
  std::erase_if(remains, [](const NcclRemains& one) { return one.communicator == nullptr; });
  if (remains.empty()) return {};
  const std::lock_guard lock(mutex_);
  Ending& ending = endings_.emplace_back();
  ending.remains = std::move(remains);
  ending.how = how;
  ending.deadline = std::chrono::steady_clock::now() + options_.abort_limit;
  ending.worker = std::thread([this, &ending] { work_off(ending); });
  ending.watch = std::thread([this, &ending] { watch(ending); });
  return ending.events.get_future();
}

// What NCCL says does not matter where there is nothing else to do with the communicators.
void NcclDevice::work_off(Ending& ending) {
  enter_thread();
  const bool in_order = ending.how == How::kInOrder && finalize_all(ending);
  const auto has_flight = [](const NcclRemains& one) { return one.flight.has_value(); };
  const bool is_revoked = in_order || revoke_all(ending);
  const bool may_run = !is_revoked && std::any_of(ending.remains.begin(), ending.remains.end(), has_flight);
  if (!may_run) release_all(ending);  // before others are waited for
  free_all(ending, in_order);
  if (may_run) release_all(ending);
  const std::lock_guard lock(mutex_);
  ending.is_over = true;
  changed_.notify_all();
}

// Whether it ended in time. A peer that died meanwhile never finalizes.
bool NcclDevice::finalize_all(const Ending& ending) const {
  for (const NcclRemains& one : ending.remains) {
    if (api_.comm_finalize(one.communicator).failed()) return false;
  }
  return wait_for_all(ending, options_.abort_limit / 2);
}

// Whether nothing runs on them any more. One that is still being made cannot be revoked, nor one that is finalizing.
bool NcclDevice::revoke_all(const Ending& ending) const {
  bool all = true;
  for (const NcclRemains& one : ending.remains) all = !api_.comm_revoke(one.communicator).failed() && all;
  return all && wait_for_all(ending, options_.abort_limit / 4);
}

bool NcclDevice::wait_for_all(const Ending& ending, std::chrono::milliseconds limit) const {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (const NcclRemains& one : ending.remains) {
    NcclOutcome outcome = api_.comm_get_async_error(one.communicator);
    while (outcome.in_progress() && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(kEndingPoll);
      outcome = api_.comm_get_async_error(one.communicator);
    }
    if (!outcome.done()) return false;
  }
  return true;
}

// Transfers that still run hold what somebody waits for: the deadline goes on. Else there is time until others are
// over.
void NcclDevice::free_all(Ending& ending, bool in_order) {
  const auto running = static_cast<int>(std::count_if(ending.remains.begin(), ending.remains.end(),
                                                      [](const auto& one) { return one.flight.has_value(); }));
  {
    std::unique_lock lock(mutex_);
    if (running == 0) ending.deadline.reset();
    ++wait_to_free_;
    to_be_ended_ += running;
    changed_.notify_all();
    changed_.wait(lock, [this] { return at_work_ == to_be_ended_; });
    --wait_to_free_;
    ++freeing_;
    if (running == 0) ending.deadline = std::chrono::steady_clock::now() + options_.abort_limit;
    changed_.notify_all();
  }
  for (const NcclRemains& one : ending.remains) {
    static_cast<void>(in_order ? api_.comm_destroy(one.communicator) : api_.comm_abort(one.communicator));
  }
  const std::lock_guard lock(mutex_);
  to_be_ended_ -= running;
  --freeing_;
}

void NcclDevice::release_all(Ending& ending) {
  std::vector<NcclEvent> events;
  for (NcclRemains& one : ending.remains) {
    if (!one.flight) continue;
    if (NcclEvent over = release(*one.flight); over != nullptr) events.push_back(std::move(over));
    one.flight.reset();
  }
  ending.events.set_value(std::move(events));
}

void NcclDevice::watch(Ending& ending) {
  std::unique_lock lock(mutex_);
  while (!ending.is_over) {
    if (!ending.deadline) {
      changed_.wait(lock);
    } else if (std::chrono::steady_clock::now() < *ending.deadline) {
      changed_.wait_until(lock, *ending.deadline);
    } else {
      lock.unlock();
      return options_.on_hang(
          {ErrorCode::kUnavailable,
           "NCCL did not give its communicators up within " + std::to_string(options_.abort_limit.count()) + " ms",
           "only the end of this process frees the GPU"});
    }
  }
}

// When the stream is free of it: what it is over with. Nothing: nobody can know any more.
NcclEvent NcclDevice::release(NcclFlight& flight) {
  if (flight.over == nullptr) {
    const auto event = event_on(flight.lane.stream);
    if (event) flight.over = *event;  // else the device is lost, and no lane of it is waited for
  }
  while (flight.over != nullptr && api_.event_query(flight.over).in_progress()) {
    std::this_thread::sleep_for(kEndingPoll);
  }
  give_back(flight.use, flight.lane);
  flight.payload = {};
  return {flight.over, api_.event_destroy};
}

void NcclDevice::join_ended() {
  std::list<Ending> ended;
  {
    const std::lock_guard lock(mutex_);
    for (auto each = endings_.begin(); each != endings_.end();) {
      const auto next = std::next(each);
      if (each->is_over) ended.splice(ended.end(), endings_, each);
      each = next;
    }
  }
  for (Ending& ending : ended) {
    ending.worker.join();
    ending.watch.join();
  }
}

}  // namespace everstep::trainer
