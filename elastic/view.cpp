#include "elastic/view.h"

#include <algorithm>
#include <utility>

namespace everstep::elastic {

const KeyValue* View::find(std::string_view key) const {
  const auto found = items_.find(key);
  return found == items_.end() ? nullptr : &found->second;
}

std::vector<const KeyValue*> View::below(std::string_view prefix) const {
  std::vector<const KeyValue*> found;
  for (auto item = items_.lower_bound(prefix); item != items_.end() && item->first.starts_with(prefix); ++item) {
    found.push_back(&item->second);
  }
  return found;
}

Revision View::modified(std::string_view key) const {
  const KeyValue* item = find(key);
  return item == nullptr ? 0 : item->modified;
}

Revision View::created(std::string_view key) const {
  const KeyValue* item = find(key);
  return item == nullptr ? 0 : item->created;
}

bool View::apply(const std::vector<WatchEvent>& events) {
  bool changed = false;
  for (const WatchEvent& event : events) {
    const KeyValue* known = find(event.item.key);
    const Revision newest = known != nullptr ? known->modified : listed_;
    if (event.item.modified <= newest) continue;
    revision_ = std::max(revision_, event.item.modified);
    if (event.deleted) {
      changed = items_.erase(event.item.key) > 0 || changed;
    } else {
      items_[event.item.key] = event.item;
      changed = true;
    }
  }
  return changed;
}

bool View::replace(std::vector<KeyValue> items, Revision revision) {
  if (revision < revision_) return false;
  std::map<std::string, KeyValue, std::less<>> replaced;
  for (KeyValue& item : items) {
    std::string key = item.key;
    replaced.emplace(std::move(key), std::move(item));
  }
  const bool changed = replaced != items_;
  items_ = std::move(replaced);
  revision_ = listed_ = revision;
  return changed;
}

}  // namespace everstep::elastic
