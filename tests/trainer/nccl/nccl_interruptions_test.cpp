// What becomes of a transfer that is interrupted, at every step that it takes, and of links that are being made.
// Threads are stopped at the step, and go on when the interruption has happened.
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/trainer/nccl/nccl_workers.h"
#include "tests/trainer/nccl/stop.h"
#include "trainer/threads/thread_transport.h"
#include "trainer/wire/wrapped_transport.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBytes = 1000;
constexpr int kSender = 0;
constexpr int kReceiver = 1;
constexpr int kThird = 2;

// The wire of the hosts, on which a notice or a credit has come and is about to be taken.
class HostThatStops final : public WrappedTransport {
 public:
  HostThatStops(std::unique_ptr<Transport> host, Stop* stop)
      : WrappedTransport(*host), host_(std::move(host)), stop_(stop) {}
  Result<FrameHeader> wait(ReceiveId receive, std::chrono::milliseconds timeout) override {
    if (stop_ != nullptr) stop_->pass();
    return host_->wait(receive, timeout);
  }

 private:
  std::unique_ptr<Transport> host_;
  Stop* stop_;
};

// The steps of a transfer, one after the other, and who takes them.
enum class Step : std::uint8_t {
  kNoticeCame,   // the receiver
  kReceives,     // the receiver; nothing is launched
  kHasReceived,  // the receiver; launched at one end, and the credit is not sent
  kCreditCame,   // the sender; launched at one end
  kSends,        // the sender
  kHasSent,      // the sender; launched at both ends
  kRuns,         // nobody: the kernel waits for what the sender computes
};
constexpr std::array kSteps{Step::kNoticeCame, Step::kReceives, Step::kHasReceived, Step::kCreditCame,
                            Step::kSends,      Step::kHasSent,  Step::kRuns};

std::string name_of(Step step) {
  constexpr std::array kNames{"NoticeCame", "Receives", "HasReceived", "CreditCame", "Sends", "HasSent", "Runs"};
  return kNames.at(static_cast<std::size_t>(step));
}

int taker_of(Step step) { return step <= Step::kHasReceived ? kReceiver : kSender; }

class Interruptions : public testing::TestWithParam<Step> {
 protected:
  Interruptions() {
    auto hosts = make_thread_transports(3);
    for (int i = 0; i < 3; ++i) {
      const bool stops =
          (step() == Step::kNoticeCame && i == kReceiver) || (step() == Step::kCreditCame && i == kSender);
      hosts_[i] = std::make_unique<HostThatStops>(std::move(hosts[i]), stops ? &stop_ : nullptr);
      NcclWorkerOptions options;
      options.change = [this](NcclApi& api) { stop_in(api); };
      workers_[i] = std::make_unique<NcclWorker>(options);
    }
    const auto meshes = [&] {
      return connect_all({workers_[0]->nccl, workers_[1]->nccl, workers_[2]->nccl},
                         {hosts_[0].get(), hosts_[1].get(), hosts_[2].get()});
    };
    auto made = meshes();
    for (int i = 0; i < 3; ++i) {
      meshes_[i] = std::move(made[i]);
      transports_[i] = over(*meshes_[i], *hosts_[i], *workers_[i]);
    }
    for (const int each : {kSender, kReceiver}) transports_[each]->need_only({kSender, kReceiver});
    stop_.arm();
  }

  ~Interruptions() override {
    stop_.let_go();
    may_compute_.set_value();
    for (int i = 0; i < 3; ++i) end(i);
    while (accelerator::emulated_communicators() > 0) std::this_thread::sleep_for(1ms);
  }

  static Step step() { return GetParam(); }

  static std::unique_ptr<Transport> over(NcclMesh& mesh, Transport& host, const NcclWorker& worker) {
    NcclTransportOptions options;
    options.compute = accelerator::native_handle(worker.compute);
    return make_nccl_transport(mesh, host, host, options);
  }

  void stop_in(NcclApi& api) {
    const auto around = [this](Step before, Step after, auto call) {
      return [this, before, after, call = std::move(call)](auto... words) {
        if (step() == before) stop_.pass();
        NcclOutcome outcome = call(words...);
        if (step() == after) stop_.pass();
        return outcome;
      };
    };
    api.recv = around(Step::kReceives, Step::kHasReceived, api.recv);
    api.send = around(Step::kSends, step() == Step::kRuns ? Step::kRuns : Step::kHasSent, api.send);
  }

  static FrameHeader header() {
    FrameHeader header;
    header.length = kBytes;
    return header;
  }

  static Buffer filled() {
    Buffer buffer = allocate_zeroed(kBytes);
    std::memset(buffer.data, 7, kBytes);
    return buffer;
  }

  // Begins a transfer that is interrupted at the step.
  void begin() {
    into_ = workers_[kReceiver]->allocate(kBytes);
    receive_ = transports_[kReceiver]->post_receive(kSender, Channel::kTensors, header(), into_);
    const Buffer payload = workers_[kSender]->allocate(kBytes);
    if (step() == Step::kRuns) {
      nccl_accelerator().launch(workers_[kSender]->compute, "long work", {},
                                [may = may_compute_.get_future().share()] { may.wait(); });
    }
    workers_[kSender]->write(payload, filled());
    transports_[kSender]->send(kReceiver, Channel::kTensors, header(), payload);
    stop_.await();
    if (step() == Step::kRuns) stop_.let_go();
  }

  void end(int worker) {
    transports_[worker].reset();
    hosts_[worker].reset();
    meshes_[worker].reset();
  }

  void expect_payload() {
    const Buffer read = allocate_zeroed(kBytes);
    workers_[kReceiver]->read(into_, read);
    EXPECT_EQ(std::memcmp(read.data, filled().data, kBytes), 0);
  }

  // All lanes are free again, and new links carry frames.
  void expect_new_links(int one, int other) {
    const auto hosts = make_thread_transports(2);
    auto meshes = connect_all({workers_[one]->nccl, workers_[other]->nccl}, {hosts[0].get(), hosts[1].get()});
    const auto from = over(*meshes[0], *hosts[0], *workers_[one]);
    const auto to = over(*meshes[1], *hosts[1], *workers_[other]);
    for (int i = 0; i < 5; ++i) {
      const ReceiveId receive = to->post_receive(0, Channel::kTensors, header(), workers_[other]->allocate(kBytes));
      from->send(1, Channel::kTensors, header(), workers_[one]->allocate(kBytes));
      EXPECT_TRUE(to->wait(receive, 10s));
    }
    EXPECT_TRUE(from->flush(10s));
  }

  Stop stop_;
  std::promise<void> may_compute_;
  std::array<std::unique_ptr<Transport>, 3> hosts_;
  std::array<std::unique_ptr<NcclWorker>, 3> workers_;
  std::array<std::unique_ptr<NcclMesh>, 3> meshes_;
  std::array<std::unique_ptr<Transport>, 3> transports_;
  Buffer into_;
  ReceiveId receive_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Steps, Interruptions, testing::ValuesIn(kSteps),
                         [](const auto& step) { return name_of(step.param); });

TEST_P(Interruptions, ByADeathElsewhereTheTransferOutlives) {
  begin();
  end(kThird);
  stop_.let_go();
  for (const int each : {kSender, kReceiver}) {
    while (transports_[each]->status()) std::this_thread::sleep_for(1ms);
    EXPECT_TRUE(transports_[each]->go_on());
    EXPECT_EQ(transports_[each]->lost(), (LostPeer{kThird, LostPeer::How::kClosed}));
  }
  if (step() == Step::kRuns) std::exchange(may_compute_, {}).set_value();
  const auto received = transports_[kReceiver]->wait(receive_, 10s);
  ASSERT_TRUE(received) << received.error();
  expect_payload();
  EXPECT_TRUE(transports_[kSender]->flush(10s));
  expect_new_links(kReceiver, kSender);
}

TEST_P(Interruptions, ByThePeersDeathNothingIsLeft) {
  begin();
  into_ = {};  // whoever knows that the transfer is over gives it back
  const int survivor = taker_of(step());
  const int dies = 1 - survivor;
  end(dies);
  stop_.let_go();
  if (survivor == kReceiver) {
    EXPECT_EQ(transports_[kReceiver]->wait(receive_, 10s).error().code, ErrorCode::kUnavailable);
  } else {
    while (transports_[kSender]->status()) std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(transports_[survivor]->go_on().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(transports_[survivor]->lost(), (LostPeer{dies, LostPeer::How::kClosed}));
  if (step() == Step::kRuns) std::exchange(may_compute_, {}).set_value();
  end(survivor);
  end(kThird);
  expect_new_links(survivor, kThird);
  expect_new_links(kThird, dies);  // whose process may live on
}

TEST_P(Interruptions, ByAnAbortNobodyHangs) {
  begin();
  into_ = {};
  const int aborts = taker_of(step());
  transports_[aborts]->abort({ErrorCode::kInternal, "the user pressed a key", {}});
  stop_.let_go();
  while (transports_[aborts]->status()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(transports_[aborts]->status().error().code, ErrorCode::kCancelled);
  if (step() == Step::kRuns) std::exchange(may_compute_, {}).set_value();
  end(aborts);
  while (transports_[1 - aborts]->status()) std::this_thread::sleep_for(1ms);
  end(1 - aborts);
  expect_new_links(kSender, kReceiver);
}

// Links that are being made, of two workers of three.
class InterruptedLinks : public testing::Test {
 protected:
  ~InterruptedLinks() override {
    while (accelerator::emulated_communicators() > 0) std::this_thread::sleep_for(1ms);
  }

  void begin(const NcclWorkerOptions& options) {
    for (int i = 0; i < 2; ++i) {
      workers_[i] = std::make_unique<NcclWorker>(options);
      making_[i] = std::thread([this, i] {
        NcclMeshRequest request;
        request.workers = 2;
        request.peers = {1 - i};
        request.is_wanted = [this] { return is_wanted_.load(); };
        request.on_missing = [](int, const std::string& why) { ADD_FAILURE() << why; };
        auto made = connect_nccl(workers_[i]->nccl, *hosts_[i], request);
        if (!made) ended_with_[i] = made.error().code;
      });
    }
  }

  void expect_both_end(ErrorCode code) {
    for (int i = 0; i < 2; ++i) {
      making_[i].join();
      EXPECT_EQ(ended_with_[i], code);
    }
  }

  std::atomic<bool> is_wanted_{true};
  std::vector<std::unique_ptr<Transport>> hosts_ = make_thread_transports(3);
  std::array<std::unique_ptr<NcclWorker>, 2> workers_;
  std::array<std::thread, 2> making_;
  std::array<ErrorCode, 2> ended_with_{};
};

NcclWorkerOptions that_do_not_connect() {
  NcclWorkerOptions options;
  options.nccl.connects = false;
  return options;
}

TEST_F(InterruptedLinks, AreThrownAwayWhileCommunicatorsAreMade) {
  begin(that_do_not_connect());
  while (accelerator::emulated_communicators() < 4) std::this_thread::sleep_for(1ms);
  is_wanted_ = false;
  expect_both_end(ErrorCode::kCancelled);
}

TEST_F(InterruptedLinks, AreThrownAwayWhenSomebodyDies) {
  begin(that_do_not_connect());
  while (accelerator::emulated_communicators() < 4) std::this_thread::sleep_for(1ms);
  hosts_[2].reset();
  expect_both_end(ErrorCode::kUnavailable);
}

// The kernel of one end waits for that of the other, which never comes.
TEST_F(InterruptedLinks, AreThrownAwayAmidTheFirstTransfer) {
  std::atomic<int> launched = 0;
  std::atomic<bool> may_receive = false;
  NcclWorkerOptions options;
  options.change = [&](NcclApi& api) {
    api.send = [&, send = api.send](auto... words) {
      ++launched;
      return send(words...);
    };
    api.recv = [&](auto...) {
      while (!may_receive) std::this_thread::sleep_for(1ms);
      return NcclOutcome{NcclOutcome::State::kInProgress, {}};  // it never gets as far as the stream
    };
  };
  begin(options);
  while (launched < 2) std::this_thread::sleep_for(1ms);
  is_wanted_ = false;
  may_receive = true;
  expect_both_end(ErrorCode::kCancelled);
}

}  // namespace
}  // namespace everstep::trainer
