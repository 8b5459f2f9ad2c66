#include "tests/accelerator/emulated_nccl.h"

#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "tests/accelerator/emulated_communicator.h"
#include "tests/accelerator/world.h"

namespace everstep::accelerator {
namespace {

using trainer::CudaEvent;
using trainer::CudaStream;
using trainer::NcclApi;
using trainer::NcclCommunicator;
using trainer::NcclOutcome;
using trainer::NcclUniqueId;
using State = NcclOutcome::State;

// An event knows what came with the transfers that it follows.
struct EmulatedEvent {
  Event event;
  std::shared_ptr<Heard> heard;
};

EmulatedCommunicator& at(NcclCommunicator communicator) { return *static_cast<EmulatedCommunicator*>(communicator); }

// One table's own.
class Table {
 public:
  Table(Accelerator& accelerator, EmulatedNcclOptions options)
      : accelerator_(accelerator), options_(std::move(options)) {}

  static StreamId stream_of(CudaStream stream) { return stream == nullptr ? 0 : stream_of_handle(stream); }

  NcclOutcome init(NcclCommunicator* made, const NcclUniqueId& id, int rank) {
    *made = new EmulatedCommunicator(accelerator_, options_, running_, id, rank);
    return {State::kInProgress, {}};
  }

  void free(NcclCommunicator communicator, const std::function<void()>& meanwhile) {
    at(communicator).end_kernels();
    check_nothing_runs();
    meanwhile();
    delete &at(communicator);
    check_nothing_runs();
  }

  NcclOutcome transfer(bool sends, void* data, std::size_t bytes, int peer, NcclCommunicator communicator,
                       CudaStream stream) {
    const NcclOutcome outcome = at(communicator).transfer(sends, data, bytes, peer, stream_of(stream));
    if (!outcome.failed() && !sends) {
      const std::lock_guard lock(mutex_);
      heard_[stream_of(stream)] = at(communicator).heard();
    }
    return outcome;
  }

  NcclOutcome record(EmulatedEvent& event, CudaStream stream) {
    event.event = accelerator_.record(stream_of(stream));
    const std::lock_guard lock(mutex_);
    const auto heard = heard_.find(stream_of(stream));
    event.heard = heard == heard_.end() ? nullptr : heard->second;
    return {};
  }

  NcclOutcome query(const EmulatedEvent& event) {
    if (!accelerator_.query(event.event)) return {State::kInProgress, {}};
    if (event.heard == nullptr) return {};
    const std::lock_guard lock(event.heard->mutex);
    world().learn(event.heard->clocks);
    const auto own = event.heard->clocks.find(world().self());
    if (own != event.heard->clocks.end()) accelerator_.learn_here(own->second);
    return {};
  }

  Accelerator& accelerator() const { return accelerator_; }
  const EmulatedNcclOptions& options() const { return options_; }

 private:
  void check_nothing_runs() const {
    if (running_ == 0) return;
    EVERSTEP_CHECK(options_.on_free_amid_transfers != nullptr, "a communicator is freed while transfers run");
    options_.on_free_amid_transfers();
  }

  Accelerator& accelerator_;
  const EmulatedNcclOptions options_;
  RunningTransfers running_{0};
  std::mutex mutex_;
  std::map<StreamId, std::shared_ptr<Heard>> heard_;  // the last receive's
};

NcclUniqueId unique_id() {
  NcclUniqueId id{};
  for (std::size_t i = 0; i < kEmulatedNameBytes; i += sizeof(std::uint64_t)) {
    const std::uint64_t number = random_number();
    std::memcpy(id.data() + i, &number, sizeof number);
  }
  return id;
}

void add_communicators(NcclApi& api, const std::shared_ptr<Table>& table) {
  api.comm_init_rank = [table](NcclCommunicator* made, const NcclUniqueId& id, int rank) {
    return table->init(made, id, rank);
  };
  api.comm_get_async_error = [](NcclCommunicator communicator) { return at(communicator).state(); };
  api.send = [table](const void* from, std::size_t bytes, int peer, NcclCommunicator communicator, CudaStream stream) {
    return table->transfer(true, const_cast<void*>(from), bytes, peer, communicator, stream);
  };
  api.recv = [table](void* into, std::size_t bytes, int peer, NcclCommunicator communicator, CudaStream stream) {
    return table->transfer(false, into, bytes, peer, communicator, stream);
  };
  api.comm_finalize = [](NcclCommunicator communicator) { return at(communicator).finalize(); };
  api.comm_destroy = [table](NcclCommunicator communicator) {
    table->free(communicator, [] {});
    return NcclOutcome{};
  };
  api.comm_revoke = [](NcclCommunicator communicator) { return at(communicator).revoke(); };
  api.comm_abort = [table](NcclCommunicator communicator) {
    table->free(communicator, table->options().in_abort);
    return NcclOutcome{};
  };
}

void add_streams(NcclApi& api, const std::shared_ptr<Table>& table) {
  api.stream_create = [table]() -> Result<CudaStream> {
    return CudaStream(native_handle(table->accelerator().new_stream(table->options().device)));
  };
  api.allocate = [table](std::size_t bytes, CudaStream stream) -> Result<void*> {
    return table->accelerator().allocate(bytes, Table::stream_of(stream));
  };
  api.event_create = []() -> Result<CudaEvent> { return CudaEvent(new EmulatedEvent); };
  api.event_destroy = [](CudaEvent event) { delete static_cast<EmulatedEvent*>(event); };
  api.event_record = [table](CudaEvent event, CudaStream stream) {
    return table->record(*static_cast<EmulatedEvent*>(event), stream);
  };
  api.event_query = [table](CudaEvent event) { return table->query(*static_cast<const EmulatedEvent*>(event)); };
  api.stream_wait_event = [table](CudaStream stream, CudaEvent event) {
    table->accelerator().wait(Table::stream_of(stream), static_cast<const EmulatedEvent*>(event)->event);
    return NcclOutcome{};
  };
}

}  // namespace

NcclApi emulated_nccl(Accelerator& accelerator, const EmulatedNcclOptions& options) {
  const auto table = std::make_shared<Table>(accelerator, options);
  NcclApi api;
  api.get_version = [table] { return table->options().version; };
  api.set_device = [table](int) {
    return table->options().has_device ? NcclOutcome{} : NcclOutcome{State::kFailed, "no such device"};
  };
  api.get_unique_id = []() -> Result<NcclUniqueId> { return unique_id(); };
  add_communicators(api, table);
  add_streams(api, table);
  return api;
}

}  // namespace everstep::accelerator
