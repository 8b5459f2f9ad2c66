#include "trainer/nccl/nccl_transport.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/nccl/nccl_workers.h"
#include "trainer/threads/thread_transport.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::UnorderedElementsAre;

void wait_for_no_communicators() {
  while (accelerator::emulated_communicators() > 0) std::this_thread::sleep_for(1ms);
}

FrameHeader header(std::size_t length) {
  FrameHeader header;
  header.length = length;
  return header;
}

// Two workers whose frames lie on their devices.
class NcclTransport : public testing::Test {
 protected:
  ~NcclTransport() override {
    for (auto& transport : transports_) transport.reset();
    meshes_.clear();
    let_abort_go();
    workers_.clear();
    EXPECT_EQ(accelerator::emulated_communicators(), 0);
  }

  void start(const NcclWorkerOptions& options = {}) {
    std::vector<std::shared_ptr<NcclDevice>> nccl;
    for (int i = 0; i < 2; ++i) {
      workers_.push_back(std::make_unique<NcclWorker>(options));
      nccl.push_back(workers_.back()->nccl);
    }
    meshes_ = connect_all(nccl, {hosts_[0].get(), hosts_[1].get()});
    for (int i = 0; i < 2; ++i) {
      NcclTransportOptions own;
      own.compute = accelerator::native_handle(workers_[i]->compute);
      transports_[i] = make_nccl_transport(*meshes_[i], *hosts_[i], *hosts_[i], own);
    }
  }

  void send(std::size_t bytes = 64) {
    transports_[0]->send(1, Channel::kTensors, header(bytes), workers_[0]->allocate(bytes));
  }
  ReceiveId post() { return transports_[1]->post_receive(0, Channel::kTensors, header(64), workers_[1]->allocate(64)); }

  void let_abort_go() {
    const std::lock_guard lock(mutex_);
    abort_may_go_ = true;
    changed_.notify_all();
  }
  void hold_abort() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return abort_may_go_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool abort_may_go_ = false;
  std::vector<std::unique_ptr<Transport>> hosts_ = make_thread_transports(2);
  std::vector<std::unique_ptr<NcclWorker>> workers_;
  std::vector<std::unique_ptr<NcclMesh>> meshes_;
  std::unique_ptr<Transport> transports_[2];
};

TEST_F(NcclTransport, CommunicatorsAreMadeBeforeTheFirstFrameAndNoneLater) {
  start();
  EXPECT_EQ(accelerator::emulated_communicators(), 4) << "one for each end of each direction";
  for (int i = 0; i < 3; ++i) {
    const ReceiveId receive = post();
    send();
    ASSERT_TRUE(transports_[1]->wait(receive, 10s));
  }
  EXPECT_EQ(accelerator::emulated_communicators(), 4);
}

// A GPU that had it could not run anything else.
TEST_F(NcclTransport, NothingIsLaunchedThatThePeerIsNotReadyFor) {
  start();
  const auto before = nccl_accelerator().counters().launches;
  const ReceiveId first = post();
  const ReceiveId second =
      transports_[0]->post_receive(1, Channel::kCollectives, header(64), workers_[0]->allocate(64));
  EXPECT_FALSE(transports_[1]->ready(first));
  EXPECT_FALSE(transports_[0]->ready(second));
  EXPECT_EQ(nccl_accelerator().counters().launches, before);
  send();
  ASSERT_TRUE(transports_[1]->wait(first, 10s));
  ASSERT_TRUE(transports_[0]->flush(10s));
  EXPECT_EQ(nccl_accelerator().counters().launches, before + 2);
}

TEST_F(NcclTransport, ClosingEndsCommunicatorsInOrder) {
  NcclWorkerOptions options;
  std::atomic<int> aborts = 0;
  options.nccl.in_abort = [&] { ++aborts; };
  start(options);
  const ReceiveId receive = post();
  send();
  ASSERT_TRUE(transports_[1]->wait(receive, 10s));
  std::thread other([&] { EXPECT_TRUE(transports_[0]->close(10s)); });
  EXPECT_TRUE(transports_[1]->close(10s));
  other.join();
  wait_for_no_communicators();
  EXPECT_EQ(aborts, 0);
}

TEST_F(NcclTransport, ADeathEndsTheKernelsThatWaitForThePeer) {
  start();
  const ReceiveId receive = post();
  send();
  transports_[0]->leave();  // its communicators are aborted, maybe before the transfer
  transports_[0].reset();
  hosts_[0].reset();
  static_cast<void>(transports_[1]->wait(receive, 10s));
  transports_[1].reset();
  wait_for_no_communicators();
}

TEST_F(NcclTransport, AFailureOfNcclIsOnesOwnIfTheHostKnowsOfNoDeath) {
  NcclWorkerOptions options;
  options.nccl.tells_of_death = true;
  start(options);
  const ReceiveId receive = post();
  transports_[0].reset();  // its communicators end, and its host's wire does not
  meshes_[0]->end(NcclDevice::How::kAtOnce);
  hosts_[0]->send(
      1, Channel::kTensors,
      [] {
        FrameHeader notice = header(64);
        notice.length = kFrameHeaderBytes;
        return notice;
      }(),
      [] {
        const FrameBytes bytes = encode_frame(header(64));
        Buffer notice = allocate_zeroed(bytes.size());
        std::copy(bytes.begin(), bytes.end(), notice.data);
        return notice;
      }());
  const auto received = transports_[1]->wait(receive, 20s);
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(received.error().message, HasSubstr("remote process exited"));
  EXPECT_EQ(transports_[1]->lost(), (LostPeer{0, LostPeer::How::kSilent}));
}

TEST_F(NcclTransport, AnAbortThatHangsHoldsUpNobodyAndIsTold) {
  NcclWorkerOptions options;
  std::atomic<bool> told = false;
  options.abort_limit = 50ms;
  options.nccl.in_abort = [this] { hold_abort(); };
  options.on_hang = [&](const Error& error) {
    EXPECT_EQ(error.message, "NCCL did not give its communicators up within 50 ms");
    EXPECT_THAT(error.hint, HasSubstr("end of this process"));
    told = true;
  };
  start(options);
  transports_[0]->abort({ErrorCode::kInternal, "stop", {}});
  transports_[0].reset();  // returns though the abort does not
  while (!told) std::this_thread::sleep_for(1ms);
  EXPECT_GT(accelerator::emulated_communicators(), 0);
  transports_[1].reset();
  let_abort_go();
  wait_for_no_communicators();
}

class NcclMeshes : public testing::Test {
 protected:
  // Who says of whom why they have no links ("0-1: why"), and why nobody has any ("0: 1 has none: why").
  std::vector<std::string> missing_of(
      const std::vector<std::shared_ptr<NcclDevice>>& nccl,
      const ChangeRequest& change = [](int, NcclMeshRequest&) {}) {
    const auto hosts = make_thread_transports(static_cast<int>(nccl.size()));
    std::vector<Transport*> wires;
    for (const auto& host : hosts) wires.push_back(host.get());
    std::mutex mutex;
    std::vector<std::string> missing;
    meshes_ = connect_all(nccl, wires, [&](int me, NcclMeshRequest& request) {
      request.on_missing = [&, me](int peer, const std::string& why) {
        const std::lock_guard lock(mutex);
        missing.push_back(std::to_string(me) + "-" + std::to_string(peer) + ": " + why);
      };
      request.on_without = [&, me](int worker, const std::string& why) {
        const std::lock_guard lock(mutex);
        missing.push_back(std::to_string(me) + ": " + std::to_string(worker) + " has none: " + why);
      };
      change(me, request);
    });
    return missing;
  }

  std::vector<std::unique_ptr<NcclMesh>> meshes_;
};

TEST_F(NcclMeshes, NobodyHasLinksIfOneWorkerHasNoNccl) {
  const NcclWorker zero;
  const NcclWorker two;
  EXPECT_THAT(missing_of({zero.nccl, nullptr, two.nccl}),
              UnorderedElementsAre("0: 1 has none: no NCCL was found", "1: 1 has none: no NCCL was found",
                                   "2: 1 has none: no NCCL was found"));
  for (const auto& mesh : meshes_) EXPECT_THAT(mesh->peers(), ElementsAre());
}

// Nor if it is not a peer of the one that asks: workers of other groups in other places.
TEST_F(NcclMeshes, AllOfThePlanCount) {
  const NcclWorker zero;
  const NcclWorker one;
  const NcclWorker two;
  const auto two_by_two = [](int me, NcclMeshRequest& request) { request.peers = nccl_peers(me, 2, 2); };
  EXPECT_THAT(missing_of({zero.nccl, one.nccl, two.nccl, nullptr}, two_by_two), SizeIs(4));
  for (const auto& mesh : meshes_) EXPECT_THAT(mesh->peers(), ElementsAre());
  const NcclWorker three;
  EXPECT_THAT(missing_of({zero.nccl, one.nccl, two.nccl, three.nccl}, two_by_two), ElementsAre());
  EXPECT_THAT(meshes_[0]->peers(), ElementsAre(1, 2));
}

TEST_F(NcclMeshes, VersionsThatDifferDoNotMeet) {
  NcclWorkerOptions newer;
  newer.nccl.version = 23100;
  const NcclWorker zero;
  const NcclWorker one(newer);
  EXPECT_THAT(missing_of({zero.nccl, one.nccl}),
              UnorderedElementsAre("0: 1 has none: it has NCCL 23100, and this worker 23007",
                                   "1: 0 has none: it has NCCL 23007, and this worker 23100"));
}

TEST_F(NcclMeshes, BothEndsAreToldWhyThereIsNoId) {
  NcclWorkerOptions without_ids;
  without_ids.change = [](NcclApi& api) {
    api.get_unique_id = []() -> Result<NcclUniqueId> { return Error{ErrorCode::kUnavailable, "no unique id", {}}; };
  };
  const NcclWorker zero;
  const NcclWorker one(without_ids);
  EXPECT_THAT(missing_of({zero.nccl, one.nccl}),
              UnorderedElementsAre("0-1: that worker said: no unique id", "1-0: no unique id"));
}

// As where a firewall is between them.
TEST_F(NcclMeshes, APairThatNcclDoesNotConnectIsNotTriedAgain) {
  NcclWorkerOptions cut_off;
  cut_off.nccl.connects = false;
  const NcclWorker zero;
  const NcclWorker one(cut_off);
  std::mutex mutex;
  std::set<int> unreachable;
  const auto soon = [&](int me, NcclMeshRequest& request) {
    request.timeout = 200ms;
    request.on_unreachable = [&, me](int peer) {
      const std::lock_guard lock(mutex);
      if (me == 0) unreachable.insert(peer);
    };
  };
  EXPECT_THAT(missing_of({zero.nccl, one.nccl}, soon),
              UnorderedElementsAre("0-1: NCCL did not connect in time", "1-0: NCCL did not connect in time"));
  EXPECT_THAT(unreachable, ElementsAre(1));
  const auto again = [&](int me, NcclMeshRequest& request) {
    if (me == 0) request.unreachable = unreachable;
  };
  EXPECT_THAT(missing_of({zero.nccl, one.nccl}, again),
              UnorderedElementsAre("0-1: NCCL did not connect before", "1-0: that worker does not reach this one"));
}

// More workers than lanes, on one hardware queue each.
TEST_F(NcclMeshes, ManyWorkersConnectOnOneQueue) {
  std::vector<std::unique_ptr<NcclWorker>> workers;
  std::vector<std::shared_ptr<NcclDevice>> nccl;
  NcclWorkerOptions options;
  options.hardware_queues = 1;
  for (int i = 0; i < 10; ++i) {
    workers.push_back(std::make_unique<NcclWorker>(options));
    nccl.push_back(workers.back()->nccl);
  }
  EXPECT_THAT(missing_of(nccl), ElementsAre());
  for (const auto& mesh : meshes_) EXPECT_EQ(mesh->peers().size(), 9);
}

TEST_F(NcclMeshes, NobodyWaitsForOneThatIsNotWanted) {
  const auto hosts = make_thread_transports(2);
  const NcclWorker worker;
  NcclMeshRequest request;
  request.workers = 2;
  request.peers = {1};
  int looks = 0;
  request.is_wanted = [&] { return ++looks < 5; };
  const auto mesh = connect_nccl(worker.nccl, *hosts[0], request);
  ASSERT_FALSE(mesh);
  EXPECT_EQ(mesh.error().code, ErrorCode::kCancelled);
}

TEST(NcclPeers, AreThoseOfTheGroupAndOfThePlace) {
  EXPECT_THAT(nccl_peers(0, 3, 1), ElementsAre(1, 2));
  EXPECT_THAT(nccl_peers(4, 3, 2), ElementsAre(1, 3, 5));
  EXPECT_THAT(nccl_peers(0, 1, 3), ElementsAre(1, 2));
}

TEST(NcclDevices, NeedAGpu) {
  const auto opened =
      NcclDevice::open(emulated_nccl(nccl_accelerator(), {.has_device = false}), {.device = 3, .on_hang = {}});
  EXPECT_THAT(opened.error().message, HasSubstr("GPU 3: no such device"));
}

}  // namespace
}  // namespace everstep::trainer
