#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "elastic/keys.h"
#include "elastic/kv_store.h"

namespace everstep::elastic {

// Seals the values of a job's keys, so that whoever may write to the store but does not know the job's secret cannot
// make up a record: each value ends with a line "seal <64 digits>", a MAC over its key and all before that line. A
// value under another key, or of another job, is as wrong as garbage. The spec is not covered: it carries a seal of its
// own, and the MAC's key is made from its text.
//
// What a seal cannot tell is that a value is an old one, put back under its own key. That is told by what the value is
// about: an attempt's nonce, a member's registration, a generation and a sequence that only grow (HighWater).
class RecordSeal {
 public:
  using Mac = std::function<std::string(std::string_view text)>;  // 64 digits; pure, from any thread

  // Of a job without a secret: values are as they are.
  RecordSeal() = default;
  RecordSeal(const Keys& keys, Mac mac) : kind_(Kind::kSealed), keys_(keys), mac_(std::move(mac)) {}
  // For readers that do not know the secret: seals are taken off unseen, and nothing can be written.
  static RecordSeal unchecked(const Keys& keys);

  std::string seal(std::string_view key, std::string value) const;
  // Nothing: forged, or damaged.
  std::optional<std::string> open(std::string_view key, std::string_view text) const;

  // What to send instead, and what to make of the answer. What is forged leaves `reads` for `forged`.
  Txn seal(Txn txn) const;
  TxnReply open(TxnReply reply) const;
  std::vector<WatchEvent> open(std::vector<WatchEvent> events) const;

 private:
  enum class Kind { kPlain, kUnchecked, kSealed };

  bool covers(std::string_view key) const;
  bool open(KeyValue& item) const;  // false: forged, and without its value now

  Kind kind_ = Kind::kPlain;
  Keys keys_{""};
  Mac mac_;
};

}  // namespace everstep::elastic
