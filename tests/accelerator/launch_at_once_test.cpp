// Why the NCCL transport gives credits. A transport that launches each transfer as soon as it is posted, on a stream of
// its link, hangs when there are more streams than hardware queues: a receive that is posted ahead stands in the queue
// behind one that waits for its peer, and whatever shares the queue stands behind both.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/schedule.h"
#include "tests/trainer/nccl/nccl_workers.h"
#include "trainer/loop/input_queue.h"
#include "trainer/threads/thread_transport.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;
using scheduler::Schedule;

// AMDP with D = 8: inputs are posted ahead, as InputQueue does.
constexpr int kWorkers = 8;
constexpr std::size_t kAhead = 4;
constexpr std::size_t kBytes = 1024;

const Schedule& schedule() {
  static const Schedule made = [] {
    scheduler::ScheduleRequest request;
    request.depth = kWorkers;
    request.window = 2 * kWorkers;
    request.windows = 2;
    return scheduler::make_schedule(request).value();
  }();
  return made;
}

// What the threads of all workers wait for. If each waits for work of its device that is not over, and no device has
// any that can go on by itself, none ever will.
class Patience {
 public:
  // False: it would be for ever.
  bool wait(int worker, const std::function<bool()>& is_over) {
    while (true) {
      const auto stuck = nccl_accelerator().stuck_at(
          [](accelerator::StreamId stream) { return accelerator::waits_for_its_peer(nccl_accelerator(), stream); });
      const bool over = is_over();
      if (over || is_hopeless(worker, stuck)) {
        const std::lock_guard lock(mutex_);
        waiting_since_.erase(worker);
        return over;
      }
      std::this_thread::sleep_for(1ms);
    }
  }
  void has_ended() {
    const std::lock_guard lock(mutex_);
    --running_;
  }

 private:
  bool is_hopeless(int worker, const std::optional<std::uint64_t>& stuck) {
    const std::lock_guard lock(mutex_);
    waiting_since_[worker] = stuck;
    const auto is_same = [&](const auto& each) { return each.second == stuck; };
    is_hopeless_ = is_hopeless_ || (stuck && std::ssize(waiting_since_) == running_ &&
                                    std::all_of(waiting_since_.begin(), waiting_since_.end(), is_same));
    return is_hopeless_;
  }

  std::mutex mutex_;
  int running_ = kWorkers;
  bool is_hopeless_ = false;
  std::map<int, std::optional<std::uint64_t>> waiting_since_;  // by worker: how much work was over
};

// What a worker needs of its transport.
class Wires {
 public:
  virtual ~Wires() = default;
  virtual void post(int from, const FrameHeader& header, const Buffer& into) = 0;
  virtual void send(int to, const FrameHeader& header, const Buffer& payload) = 0;
  virtual bool take(int from) = 0;  // the next one that was posted; false: it never comes
  virtual bool finish() = 0;        // until all that was sent is taken
};

// Inputs and outputs of a worker's ops.
struct Passing {
  InputSource input;
  OutputTarget output;
};

std::vector<Passing> passings_of(int worker) {
  FrameHeader job;
  job.length = kBytes;
  std::vector<Passing> all;
  for (const scheduler::Op& op : schedule().workers[static_cast<std::size_t>(worker)]) {
    all.push_back({input_of(schedule(), worker, op, job), {}});
    if (is_compute(op)) all.back().output = output_of(schedule(), worker, op, job);
  }
  return all;
}

// The launch rule of the adapter that this project once had.
class LaunchAtOnce final : public Wires {
 public:
  LaunchAtOnce(const NcclWorker& worker, int number, const std::map<std::pair<int, int>, NcclUniqueId>& ids,
               Patience& patience)
      : worker_(worker), number_(number), patience_(patience), api_(worker.nccl->api()) {
    // In the order in which they are needed.
    for (const Passing& passing : passings_of(number)) {
      const int from = passing.input.from;
      if (from >= 0 && !in_.contains(from)) open(in_[from], ids.at({from, number}), 1);
      const int to = passing.output.to;
      if (to >= 0 && !out_.contains(to)) open(out_[to], ids.at({number, to}), 0);
    }
    for (auto* links : {&in_, &out_}) {
      for (auto& [peer, link] : *links) {
        while (api_.comm_get_async_error(link.communicator).in_progress()) std::this_thread::sleep_for(1ms);
      }
    }
  }

  ~LaunchAtOnce() override {
    for (auto* links : {&in_, &out_}) {
      for (auto& [peer, link] : *links) static_cast<void>(api_.comm_revoke(link.communicator));
    }
    for (auto* links : {&in_, &out_}) {
      for (auto& [peer, link] : *links) end(link);
    }
  }

  void post(int from, const FrameHeader& /*header*/, const Buffer& into) override {
    Link& link = in_[from];
    order(link);
    EXPECT_TRUE(api_.recv(into.data, into.size, 0, link.communicator, link.stream).done());
    link.transfers.push_back({event_on(link.stream), into});
  }

  void send(int to, const FrameHeader& /*header*/, const Buffer& payload) override {
    Link& link = out_[to];
    order(link);
    EXPECT_TRUE(api_.send(payload.data, payload.size, 1, link.communicator, link.stream).done());
    link.transfers.push_back({event_on(link.stream), payload});
  }

  bool take(int from) override { return first_is_over(in_[from]); }

  bool finish() override {
    for (auto& [peer, link] : out_) {
      while (!link.transfers.empty()) {
        if (!first_is_over(link)) return false;
      }
    }
    return true;
  }

 private:
  struct Transfer {
    CudaEvent over;
    Buffer payload;
  };
  struct Link {
    NcclCommunicator communicator = nullptr;
    CudaStream stream = nullptr;
    std::deque<Transfer> transfers;
  };

  void open(Link& link, const NcclUniqueId& id, int rank) {
    link.stream = api_.stream_create().value();
    EXPECT_FALSE(api_.comm_init_rank(&link.communicator, id, rank).failed());
  }

  void end(Link& link) {
    static_cast<void>(api_.comm_abort(link.communicator));
    for (const Transfer& transfer : link.transfers) {
      while (api_.event_query(transfer.over).in_progress()) std::this_thread::sleep_for(1ms);
      api_.event_destroy(transfer.over);
    }
    link.transfers.clear();
  }

  CudaEvent event_on(CudaStream stream) { return worker_.nccl->event_on(stream).value(); }

  void order(const Link& link) {
    CudaEvent const computed = event_on(accelerator::native_handle(worker_.compute));
    EXPECT_TRUE(api_.stream_wait_event(link.stream, computed).done());
    api_.event_destroy(computed);
  }

  bool first_is_over(Link& link) {
    CudaEvent const over = link.transfers.front().over;
    if (!patience_.wait(number_, [&] { return !api_.event_query(over).in_progress(); })) return false;
    EXPECT_TRUE(api_.stream_wait_event(accelerator::native_handle(worker_.compute), over).done());
    api_.event_destroy(over);
    link.transfers.pop_front();
    return true;
  }

  const NcclWorker& worker_;
  const int number_;
  Patience& patience_;
  const NcclApi& api_;
  std::map<int, Link> in_;
  std::map<int, Link> out_;
};

class WithCredits final : public Wires {
 public:
  WithCredits(const NcclWorker& worker, NcclMesh& mesh, Transport& host) {
    NcclTransportOptions options;
    options.compute = accelerator::native_handle(worker.compute);
    transport_ = make_nccl_transport(mesh, host, host, options);
  }

  void post(int from, const FrameHeader& header, const Buffer& into) override {
    posted_[from].push_back(transport_->post_receive(from, Channel::kTensors, header, into));
  }
  void send(int to, const FrameHeader& header, const Buffer& payload) override {
    transport_->send(to, Channel::kTensors, header, payload);
  }
  bool take(int from) override {
    const ReceiveId receive = posted_[from].front();
    posted_[from].pop_front();
    return transport_->wait(receive, 30s).ok();
  }
  bool finish() override { return transport_->flush(30s).ok(); }

 private:
  std::map<int, std::deque<ReceiveId>> posted_;
  std::unique_ptr<Transport> transport_;
};

// Runs a worker's pipelines, with nothing computed. Whether it got to the end.
bool pass_all(const NcclWorker& worker, int number, Wires& wires) {
  std::deque<std::pair<std::size_t, Buffer>> posted;
  std::size_t scanned = 0;
  const std::vector<Passing> all = passings_of(number);
  const Buffer made = allocate_zeroed(kBytes);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (; posted.size() < kAhead && scanned < all.size(); ++scanned) {
      const InputSource& input = all[scanned].input;
      if (input.from < 0) continue;
      posted.emplace_back(scanned, worker.allocate(kBytes));
      wires.post(input.from, input.header, posted.back().second);
    }
    if (all[i].input.from >= 0) {
      if (!wires.take(all[i].input.from)) return false;
      posted.pop_front();
    }
    if (all[i].output.to < 0) continue;
    const Buffer output = worker.allocate(kBytes);
    worker.write(output, made);
    wires.send(all[i].output.to, all[i].output.header, output);
  }
  return wires.finish();
}

// How many workers got to the end.
int run_all(
    const std::vector<std::unique_ptr<NcclWorker>>& workers,
    const std::function<std::unique_ptr<Wires>(int number)>& make, const std::function<void()>& on_end = [] {}) {
  std::vector<std::unique_ptr<Wires>> wires(kWorkers);
  std::vector<std::thread> threads;
  std::atomic<int> done = 0;
  for (int number = 0; number < kWorkers; ++number) {
    threads.emplace_back([&, number] {
      wires[number] = make(number);
      if (pass_all(*workers[number], number, *wires[number])) ++done;
      on_end();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return done;
}

std::vector<std::unique_ptr<NcclWorker>> make_workers(int hardware_queues) {
  std::vector<std::unique_ptr<NcclWorker>> workers;
  for (int i = 0; i < kWorkers; ++i) {
    workers.push_back(std::make_unique<NcclWorker>(NcclWorkerOptions{.hardware_queues = hardware_queues}));
  }
  return workers;
}

int ended_when_launched_at_once(int hardware_queues) {
  const auto workers = make_workers(hardware_queues);
  std::map<std::pair<int, int>, NcclUniqueId> ids;
  for (int from = 0; from < kWorkers; ++from) {
    for (int to = 0; to < kWorkers; ++to) ids[{from, to}] = workers[0]->nccl->api().get_unique_id().value();
  }
  Patience patience;
  return run_all(
      workers, [&](int number) { return std::make_unique<LaunchAtOnce>(*workers[number], number, ids, patience); },
      [&] { patience.has_ended(); });
}

int ended_with_credits(int hardware_queues) {
  const auto workers = make_workers(hardware_queues);
  const auto hosts = make_thread_transports(kWorkers);
  std::vector<std::shared_ptr<NcclDevice>> nccl;
  std::vector<Transport*> wires;
  for (int i = 0; i < kWorkers; ++i) {
    nccl.push_back(workers[i]->nccl);
    wires.push_back(hosts[i].get());
  }
  const auto meshes = connect_all(nccl, wires);
  return run_all(workers, [&](int number) {
    return std::make_unique<WithCredits>(*workers[number], *meshes[number], *hosts[number]);
  });
}

TEST(LaunchAtOnce, HangsOnEightQueues) { EXPECT_LT(ended_when_launched_at_once(8), kWorkers); }

TEST(LaunchAtOnce, EndsIfThereIsAQueueForEachStream) { EXPECT_EQ(ended_when_launched_at_once(32), kWorkers); }

TEST(LaunchWithCredits, EndsOnAnyNumberOfQueues) {
  for (const int queues : {1, 2, 8, 32}) EXPECT_EQ(ended_with_credits(queues), kWorkers) << queues << " queues";
}

}  // namespace
}  // namespace everstep::trainer
