#include "elastic/high_water.h"

#include <string>

#include "elastic/records.h"

namespace everstep::elastic {
namespace {

constexpr std::string_view kHint =
    "somebody who is no worker of the job has changed its keys: find out who may write to its etcd, then everstep job "
    "rm, and everstep resume goes on from the newest checkpoint";

Error went_back(const std::string& what, const std::string& key) {
  return {ErrorCode::kDataLoss, what + ": '" + key + "'", std::string(kHint)};
}

// Nothing: it is not there, or cannot be read.
std::optional<std::int64_t> generation_of(const KeyValue& item) {
  const auto record = parse_generation(item.value);
  return record ? std::optional(record->roster.attempt.generation.value) : std::nullopt;
}

std::optional<std::int64_t> sequence_of(const KeyValue& item) {
  const auto record = parse_head_record(item.value);
  return record ? std::optional(record->sequence) : std::nullopt;
}

template <typename Mark>
Status look_at(const View& view, const std::string& key, const std::string& name,
               std::optional<std::int64_t> (*number_of)(const KeyValue&), Mark& mark) {
  const bool was_seen = mark.number >= 0;
  const KeyValue* item = view.find(key);
  if (item == nullptr) {
    const bool is_gone = was_seen && view.is_gone_since(key, mark.modified);
    return is_gone ? Status(went_back("the job's " + name + " was deleted", key)) : Status();
  }
  if (item->modified <= mark.modified) return {};
  const auto number = number_of(*item);
  if (!number) return {};
  if (*number <= mark.number) {
    return went_back(
        "the job's " + name + " went back from " + std::to_string(mark.number) + " to " + std::to_string(*number), key);
  }
  mark = {*number, item->modified};
  return {};
}

}  // namespace

Status HighWater::look(const View& view, const Keys& keys) {
  EVERSTEP_TRY(look_at(view, keys.generation(), "generation", &generation_of, generation_));
  return look_at(view, keys.head(), "newest checkpoint", &sequence_of, head_);
}

}  // namespace everstep::elastic
