// Why the NCCL transport gives credits. A transport that launches each transfer as soon as it is posted, on a stream of
// its link, hangs when there are more streams than hardware queues: a receive that is posted ahead stands in the queue
// behind one that waits for its peer, and whatever shares the queue stands behind both.
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/trainer/nccl/nccl_workers.h"
#include "trainer/threads/thread_transport.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// As many as in AMDP with D = 8: each worker exchanges frames with each other one.
constexpr int kWorkers = 8;
constexpr int kSteps = 4;
constexpr int kAhead = 2;
constexpr std::size_t kBytes = 1024;

// What one worker of the exchange needs of its transport.
class Wires {
 public:
  virtual ~Wires() = default;
  virtual void post(int from, int step, const Buffer& into) = 0;
  virtual void send(int to, int step, const Buffer& payload) = 0;
  virtual bool take(int from, int step) = 0;  // false: it did not come
  virtual bool finish() = 0;                  // until all that was sent is taken
};

// The launch rule of the adapter that this project once had.
class LaunchAtOnce final : public Wires {
 public:
  LaunchAtOnce(const NcclWorker& worker, int number, const std::map<std::pair<int, int>, NcclUniqueId>& ids)
      : worker_(worker), api_(worker.nccl->api()) {
    // Each begins with its neighbour, as in a pipeline.
    for (int i = 1; i < kWorkers; ++i) {
      const int peer = (number + i) % kWorkers;
      open(in_[peer], ids.at({peer, number}), 1);
    }
    for (int i = 1; i < kWorkers; ++i) {
      const int peer = (number + i) % kWorkers;
      open(out_[peer], ids.at({number, peer}), 0);
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

  void post(int from, int /*step*/, const Buffer& into) override {
    Link& link = in_[from];
    order(link);
    EXPECT_TRUE(api_.recv(into.data, into.size, 0, link.communicator, link.stream).done());
    link.transfers.push_back({event_on(link.stream), into});
  }

  void send(int to, int /*step*/, const Buffer& payload) override {
    Link& link = out_[to];
    order(link);
    EXPECT_TRUE(api_.send(payload.data, payload.size, 1, link.communicator, link.stream).done());
    link.transfers.push_back({event_on(link.stream), payload});
  }

  bool take(int from, int /*step*/) override { return first_is_over(in_[from]); }

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
    const auto deadline = Clock::now() + 3s;
    CudaEvent const over = link.transfers.front().over;
    while (api_.event_query(over).in_progress()) {
      if (Clock::now() > deadline) return false;
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_TRUE(api_.stream_wait_event(accelerator::native_handle(worker_.compute), over).done());
    api_.event_destroy(over);
    link.transfers.pop_front();
    return true;
  }

  const NcclWorker& worker_;
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

  void post(int from, int step, const Buffer& into) override {
    posted_[{from, step}] = transport_->post_receive(from, Channel::kTensors, header(step), into);
  }
  void send(int to, int step, const Buffer& payload) override {
    transport_->send(to, Channel::kTensors, header(step), payload);
  }
  bool take(int from, int step) override { return transport_->wait(posted_.at({from, step}), 30s).ok(); }
  bool finish() override { return transport_->flush(30s).ok(); }

 private:
  static FrameHeader header(int step) {
    FrameHeader header;
    header.minibatch = step;
    header.length = kBytes;
    return header;
  }

  std::map<std::pair<int, int>, ReceiveId> posted_;
  std::unique_ptr<Transport> transport_;
};

// Each step needs what all others made in the one before. Whether it got to the end.
bool exchange(const NcclWorker& worker, int number, Wires& wires) {
  std::map<std::pair<int, int>, Buffer> inputs;
  const auto post = [&](int step) {
    for (int peer = 0; peer < kWorkers && step < kSteps; ++peer) {
      if (peer == number) continue;
      inputs[{peer, step}] = worker.allocate(kBytes);
      wires.post(peer, step, inputs[{peer, step}]);
    }
  };
  for (int step = 0; step < kAhead; ++step) post(step);
  for (int step = 0; step < kSteps; ++step) {
    const Buffer made = allocate_zeroed(kBytes);
    const Buffer output = worker.allocate(kBytes);
    worker.write(output, made);
    for (int peer = 0; peer < kWorkers; ++peer) {
      if (peer != number) wires.send(peer, step, output);
    }
    for (int peer = 0; peer < kWorkers; ++peer) {
      if (peer != number && !wires.take(peer, step)) return false;
    }
    post(step + kAhead);
  }
  return wires.finish();
}

// How many workers got to the end.
int run_all(const std::vector<std::unique_ptr<NcclWorker>>& workers,
            const std::function<std::unique_ptr<Wires>(int number)>& make) {
  std::vector<std::unique_ptr<Wires>> wires(kWorkers);
  std::vector<std::thread> threads;
  std::atomic<int> done = 0;
  for (int number = 0; number < kWorkers; ++number) {
    threads.emplace_back([&, number] {
      wires[number] = make(number);
      if (exchange(*workers[number], number, *wires[number])) ++done;
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
  return run_all(workers, [&](int number) { return std::make_unique<LaunchAtOnce>(*workers[number], number, ids); });
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
