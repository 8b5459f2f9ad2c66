#include "launcher/job/patient_store.h"

#include <thread>

namespace everstep::launcher {
namespace {

constexpr std::chrono::milliseconds kDeadline{2'000};
constexpr std::chrono::milliseconds kPause{200};
constexpr int kTries = 3;

}  // namespace

bool is_silence(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kDeadlineExceeded;
}

Result<elastic::TxnReply> transact_patiently(elastic::KvStore& store, const elastic::Txn& txn) {
  for (int tried = 1;; ++tried) {
    auto reply = store.transact(txn, kDeadline);
    if (reply || !is_silence(reply.error()) || tried == kTries) return reply;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace everstep::launcher
