#include "trainer/nccl/nccl_device.h"

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
      made->give_back(use, *lane);
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
  std::vector<NcclLane>& idle = idle_[static_cast<std::size_t>(use)];
  if (!idle.empty()) {
    const NcclLane lane = idle.back();
    idle.pop_back();
    return std::optional(lane);
  }
  if (use != NcclLaneUse::kFirst) return std::optional<NcclLane>();
  auto made = make_lane(use);
  if (!made) return made.error();
  return std::optional(*made);
}

void NcclDevice::give_back(NcclLaneUse use, const NcclLane& lane) {
  const std::lock_guard lock(mutex_);
  idle_[static_cast<std::size_t>(use)].push_back(lane);
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

NcclDevice::Ended NcclDevice::start_end(std::vector<NcclRemains> remains, How how, bool keeps_events) {
  join_ended();
  std::erase_if(remains, [](const NcclRemains& one) { return one.communicator == nullptr; });
  if (remains.empty()) return {};
  const std::lock_guard lock(mutex_);
  Ending& ending = endings_.emplace_back();
  ending.keeps_events = keeps_events;
  ending.remains = std::move(remains);
  ending.how = how;
  ending.worker = std::thread([this, &ending] { work_off(ending); });
  ending.watch = std::thread([this, over = ending.over.get_future()] {
    if (over.wait_for(options_.abort_limit) == std::future_status::ready) return;
    options_.on_hang(
        {ErrorCode::kUnavailable,
         "NCCL did not give its communicators up within " + std::to_string(options_.abort_limit.count()) + " ms",
         "only the end of this process frees the GPU"});
  });
  return ending.events.get_future();
}

void NcclDevice::work_off(Ending& ending) {
  enter_thread();
  const bool in_order = ending.how == How::kInOrder && finalize_all(ending);
  // What these calls say does not matter: there is nothing else to do with the communicators.
  for (const NcclRemains& one : ending.remains) {
    if (!in_order) static_cast<void>(api_.comm_revoke(one.communicator));
  }
  for (const NcclRemains& one : ending.remains) {
    static_cast<void>(in_order ? api_.comm_destroy(one.communicator) : api_.comm_abort(one.communicator));
  }
  std::vector<CudaEvent> events;
  for (NcclRemains& one : ending.remains) {
    if (one.flight) events.push_back(release(*one.flight));
  }
  std::erase(events, nullptr);
  if (!ending.keeps_events) {
    for (CudaEvent event : std::exchange(events, {})) api_.event_destroy(event);
  }
  ending.events.set_value(std::move(events));
  ending.over.set_value();
  ending.is_over = true;
}

// Whether it ended in time. A peer that died meanwhile never finalizes.
bool NcclDevice::finalize_all(const Ending& ending) {
  for (const NcclRemains& one : ending.remains) {
    if (api_.comm_finalize(one.communicator).failed()) return false;
  }
  const auto deadline = std::chrono::steady_clock::now() + options_.abort_limit / 2;
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

// When the stream is free of it: what it is over with.
CudaEvent NcclDevice::release(NcclFlight& flight) {
  if (flight.over == nullptr) {
    const auto event = event_on(flight.lane.stream);
    if (!event) return nullptr;  // the device is lost, and this process with it
    flight.over = *event;
  }
  while (api_.event_query(flight.over).in_progress()) std::this_thread::sleep_for(kEndingPoll);
  give_back(flight.use, flight.lane);
  flight.payload = {};
  return flight.over;
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
