#include "elastic/record_seal.h"

#include "base/check.h"

namespace everstep::elastic {
namespace {

constexpr std::string_view kLineStart = "\nseal ";
constexpr std::size_t kDigits = 64;
constexpr std::size_t kLineSize = kLineStart.size() + kDigits + 1;

// The size keeps a key and a value from being taken for another key and value.
std::string signed_text(std::string_view key, std::string_view value) {
  return std::to_string(key.size()).append(" ").append(key).append(value);
}

// In a time that does not depend on where they differ.
bool are_equal(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

bool ends_with_seal(std::string_view text) {
  return text.size() >= kLineSize && text.ends_with('\n') &&
         text.substr(text.size() - kLineSize).starts_with(kLineStart);
}

}  // namespace

RecordSeal RecordSeal::unchecked(const Keys& keys) {
  RecordSeal seal;
  seal.kind_ = Kind::kUnchecked;
  seal.keys_ = keys;
  return seal;
}

bool RecordSeal::covers(std::string_view key) const {
  return kind_ != Kind::kPlain && key.starts_with(keys_.prefix()) && key != keys_.spec();
}

std::string RecordSeal::seal(std::string_view key, std::string value) const {
  if (!covers(key)) return value;
  EVERSTEP_CHECK(kind_ == Kind::kSealed, "whoever does not know the secret writes nothing");
  const std::string mac = mac_(signed_text(key, value));
  EVERSTEP_CHECK(mac.size() == kDigits, "a MAC has 64 digits");
  return value.append(kLineStart).append(mac).append("\n");
}

std::optional<std::string> RecordSeal::open(std::string_view key, std::string_view text) const {
  if (!covers(key)) return std::string(text);
  if (!ends_with_seal(text)) return std::nullopt;
  const std::string_view value = text.substr(0, text.size() - kLineSize);
  const std::string_view mac = text.substr(value.size() + kLineStart.size(), kDigits);
  if (kind_ == Kind::kSealed && !are_equal(mac, mac_(signed_text(key, value)))) return std::nullopt;
  return std::string(value);
}

bool RecordSeal::open(KeyValue& item) const {
  auto value = open(item.key, item.value);
  const bool is_authentic = value.has_value();
  item.value = std::move(value).value_or("");
  return is_authentic;
}

Txn RecordSeal::seal(Txn txn) const {
  if (kind_ == Kind::kPlain) return txn;
  for (Compare& compare : txn.compares) {
    if (compare.field == Compare::Field::kValue) compare.value = seal(compare.key, std::move(compare.value));
  }
  for (std::vector<KvOp>* branch : {&txn.then, &txn.otherwise}) {
    for (KvOp& op : *branch) {
      if (op.kind == KvOp::Kind::kPut) op.value = seal(op.key, std::move(op.value));
    }
  }
  return txn;
}

TxnReply RecordSeal::open(TxnReply reply) const {
  if (kind_ == Kind::kPlain) return reply;
  for (std::vector<KeyValue>& found : reply.reads) {
    std::vector<KeyValue> authentic;
    for (KeyValue& item : found) {
      std::vector<KeyValue>& kind = open(item) ? authentic : reply.forged;
      kind.push_back(std::move(item));
    }
    found = std::move(authentic);
  }
  return reply;
}

std::vector<WatchEvent> RecordSeal::open(std::vector<WatchEvent> events) const {
  if (kind_ == Kind::kPlain) return events;
  for (WatchEvent& event : events) {
    if (!event.deleted) event.forged = !open(event.item);
  }
  return events;
}

}  // namespace everstep::elastic
