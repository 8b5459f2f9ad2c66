// When communicators are freed, and who waits for it.
#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/trainer/nccl/nccl_workers.h"
#include "tests/trainer/nccl/stop.h"
#include "trainer/threads/thread_transport.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kPayload = 1000;

// Two workers with links that train, and links of a generation that does not come about.
class FreedCommunicators : public testing::Test {
 protected:
  ~FreedCommunicators() override {
    for (auto& transport : transports_) transport.reset();
    meshes_.clear();
    unwanted_.clear();
    while (accelerator::emulated_communicators() > 0) std::this_thread::sleep_for(1ms);
  }

  void start(const NcclWorkerOptions& options) {
    for (auto& worker : workers_) worker = std::make_unique<NcclWorker>(options);
    meshes_ = connect(hosts_);
    unwanted_ = connect(others_);
    for (int i = 0; i < 2; ++i) {
      NcclTransportOptions own;
      own.compute = accelerator::native_handle(workers_[i]->compute);
      transports_[i] = make_nccl_transport(*meshes_[i], *hosts_[i], *hosts_[i], own);
    }
  }

  ReceiveId transfer() {
    FrameHeader header;
    header.length = kPayload;
    const ReceiveId receive =
        transports_[1]->post_receive(0, Channel::kTensors, header, workers_[1]->allocate(kPayload));
    transports_[0]->send(1, Channel::kTensors, header, workers_[0]->allocate(kPayload));
    return receive;
  }

  // At work until `computed_`.
  ReceiveId long_transfer() {
    const auto before = nccl_accelerator().counters().launches;
    nccl_accelerator().launch(workers_[0]->compute, "long work", {},
                              [may = computed_.get_future().share()] { may.wait(); });
    const ReceiveId receive = transfer();
    while (nccl_accelerator().counters().launches < before + 3) std::this_thread::sleep_for(1ms);
    return receive;
  }

  Stop in_abort_;
  std::promise<void> computed_;
  std::vector<std::unique_ptr<Transport>> hosts_ = make_thread_transports(2);
  std::vector<std::unique_ptr<Transport>> others_ = make_thread_transports(2);
  std::array<std::unique_ptr<NcclWorker>, 2> workers_;
  std::vector<std::unique_ptr<NcclMesh>> meshes_;
  std::vector<std::unique_ptr<NcclMesh>> unwanted_;
  std::array<std::unique_ptr<Transport>, 2> transports_;

 private:
  std::vector<std::unique_ptr<NcclMesh>> connect(const std::vector<std::unique_ptr<Transport>>& hosts) {
    return connect_all({workers_[0]->nccl, workers_[1]->nccl}, {hosts[0].get(), hosts[1].get()});
  }
};

// Not amid transfers, which go on afterwards. The emulated NCCL watches.
TEST_F(FreedCommunicators, AreFreedWhenNoTransferIsAtWork) {
  NcclWorkerOptions options;
  options.nccl.in_abort = [this] { in_abort_.pass(); };
  start(options);
  const ReceiveId first = long_transfer();
  in_abort_.arm();
  unwanted_.clear();
  computed_.set_value();
  ASSERT_TRUE(transports_[1]->wait(first, 10s));
  in_abort_.await();  // one of the two is being freed
  const ReceiveId second = transfer();
  in_abort_.let_go();
  ASSERT_TRUE(transports_[1]->wait(second, 10s));
}

// Whoever goes on waits for transfers that were ended, and for no others.
TEST_F(FreedCommunicators, HoldUpNobodyIfTheyHadNoTransfer) {
  NcclWorkerOptions options;
  options.change = [](NcclApi& api) {
    api.comm_revoke = [](NcclCommunicator) { return NcclOutcome{NcclOutcome::State::kFailed, "not now"}; };
  };
  start(options);
  const ReceiveId first = long_transfer();
  NcclDevice::Ended ended = workers_[0]->nccl->end_for_use(unwanted_[0]->take(1));
  EXPECT_EQ(ended.wait_for(10s), std::future_status::ready);
  computed_.set_value();
  ASSERT_TRUE(transports_[1]->wait(first, 10s));
}

TEST_F(FreedCommunicators, LeaveNoEventThoughNobodyGoesOn) {
  NcclWorkerOptions options;
  const auto events = std::make_shared<std::atomic<int>>(0);
  options.change = [events](NcclApi& api) {
    api.event_create = [events, create = std::move(api.event_create)] {
      ++*events;
      return create();
    };
    api.event_destroy = [events, destroy = std::move(api.event_destroy)](CudaEvent event) {
      --*events;
      destroy(event);
    };
  };
  start(options);
  const auto lane = workers_[0]->nccl->take(NcclLaneUse::kFirst);
  ASSERT_TRUE(lane && *lane);
  ASSERT_TRUE(unwanted_[0]->with(1)->out.launch_first(**lane));
  static_cast<void>(workers_[0]->nccl->end_for_use(unwanted_[0]->take(1)));
  for (auto& transport : transports_) transport.reset();
  meshes_.clear();
  unwanted_.clear();
  for (auto& worker : workers_) worker.reset();
  EXPECT_EQ(*events, 0);
}

// Else communicators would wait for its lane for ever, and the process would not end.
TEST_F(FreedCommunicators, AreFreedThoughNobodyKnowsWhenATransferIsOver) {
  NcclWorkerOptions options;
  const auto is_lost = std::make_shared<std::atomic<bool>>(false);
  options.change = [is_lost](NcclApi& api) {
    api.event_record = [is_lost, record = std::move(api.event_record)](CudaEvent event, CudaStream stream) {
      return *is_lost ? NcclOutcome{NcclOutcome::State::kFailed, "the device is lost"} : record(event, stream);
    };
  };
  start(options);
  const int of_training = accelerator::emulated_communicators() / 2;
  const auto lane = workers_[0]->nccl->take(NcclLaneUse::kFirst);
  ASSERT_TRUE(lane && *lane);
  *is_lost = true;
  EXPECT_FALSE(unwanted_[0]->with(1)->out.launch_first(**lane));
  unwanted_.clear();
  while (accelerator::emulated_communicators() > of_training) std::this_thread::sleep_for(1ms);
}

}  // namespace
}  // namespace everstep::trainer
