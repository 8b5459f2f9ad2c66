#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "elastic/kv_store.h"
#include "elastic/sim/kv_model.h"

namespace everstep::elastic {

// A KvStore in memory, for any thread. Leases end when told to; calls fail when told to.
class FakeKvStore final : public KvStore {
 public:
  enum class Fault { kNotExecuted, kExecutedButUnknown, kUnknownAndNotExecuted };

  Result<TxnReply> transact(const Txn& txn, std::chrono::milliseconds /*deadline*/) override {
    return shared_->call<TxnReply>([&](KvModel& model) { return model.apply(txn); });
  }

  Result<LeaseId> grant(std::chrono::seconds ttl, std::chrono::milliseconds /*deadline*/) override {
    return shared_->call<LeaseId>([&](KvModel& model) -> Result<LeaseId> {
      const LeaseId lease = model.grant();
      shared_->ttls[lease] = ttl;
      return lease;
    });
  }

  Result<std::chrono::seconds> renew(LeaseId lease, std::chrono::milliseconds /*deadline*/) override {
    return shared_->call<std::chrono::seconds>([&](KvModel& model) -> Result<std::chrono::seconds> {
      if (!model.has_lease(lease)) return not_found("the lease is gone");
      return shared_->ttls.at(lease);
    });
  }

  Status revoke(LeaseId lease, std::chrono::milliseconds /*deadline*/) override {
    return shared_->call<void>([&](KvModel& model) { return model.expire(lease); });
  }

  std::unique_ptr<Watch> watch(std::string prefix, WatchSink sink) override {
    return std::make_unique<FakeWatch>(shared_, std::move(prefix), std::move(sink));
  }

  // The next call that has no fault yet meets this one.
  void fail_next(Fault fault) {
    const std::lock_guard lock(shared_->mutex);
    shared_->faults.push_back(fault);
  }

  void expire(LeaseId lease) {
    shared_->change([&](KvModel& model) { (void)model.expire(lease); });
  }

  // Watches that have not heard everything yet miss what they have not.
  void compact() {
    shared_->change([](KvModel& model) { model.compact(model.revision()); });
  }

  // Every watch loses its connection and finds it again.
  void interrupt_watches() {
    shared_->change([&](KvModel&) { ++shared_->interruptions; });
  }

  // A copy of what it holds now.
  KvModel model() const {
    const std::lock_guard lock(shared_->mutex);
    return shared_->model;
  }

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    KvModel model;
    std::map<LeaseId, std::chrono::seconds> ttls;
    std::deque<Fault> faults;
    int interruptions = 0;

    template <typename Action>
    void change(const Action& action) {
      const std::lock_guard lock(mutex);
      action(model);
      changed.notify_all();
    }

    template <typename Value, typename Action>
    Result<Value> call(const Action& action) {
      const std::lock_guard lock(mutex);
      if (faults.empty()) {
        Result<Value> result = action(model);
        changed.notify_all();
        return result;
      }
      const Fault fault = faults.front();
      faults.pop_front();
      if (fault == Fault::kNotExecuted) return Error{ErrorCode::kUnavailable, "the fake store is away", {}};
      if (fault == Fault::kExecutedButUnknown) (void)action(model);
      changed.notify_all();
      return Error{ErrorCode::kDeadlineExceeded, "the fake store did not answer", {}};
    }
  };

  class FakeWatch final : public Watch {
   public:
    FakeWatch(std::shared_ptr<Shared> shared, std::string prefix, WatchSink sink)
        : shared_(std::move(shared)),
          prefix_(std::move(prefix)),
          sink_(std::move(sink)),
          thread_([this] { serve(); }) {}

    ~FakeWatch() override {
      {
        const std::lock_guard lock(shared_->mutex);
        stopping_ = true;
        shared_->changed.notify_all();
      }
      thread_.join();
    }

   private:
    void serve() {
      std::unique_lock lock(shared_->mutex);
      int interruptions = shared_->interruptions;
      Revision seen = shared_->model.revision();
      bool is_gap = true;
      while (!stopping_) {
        const auto events = shared_->model.events_after(seen, prefix_);
        is_gap = is_gap || !events || interruptions != shared_->interruptions;
        interruptions = shared_->interruptions;
        seen = shared_->model.revision();
        lock.unlock();
        if (std::exchange(is_gap, false)) sink_.on_gap();
        if (events && !events->empty()) sink_.on_events(*events);
        lock.lock();
        shared_->changed.wait(lock, [&] {
          return stopping_ || shared_->model.revision() != seen || interruptions != shared_->interruptions;
        });
      }
    }

    std::shared_ptr<Shared> shared_;
    std::string prefix_;
    WatchSink sink_;
    bool stopping_ = false;
    std::thread thread_;  // last: it uses all the others
  };

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace everstep::elastic
