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

const KeyValue* View::any(std::string_view key) const {
  const auto forged = forged_.find(key);
  return forged == forged_.end() ? find(key) : &forged->second;
}

Revision View::modified(std::string_view key) const {
  const KeyValue* item = any(key);
  return item == nullptr ? 0 : item->modified;
}

Revision View::created(std::string_view key) const {
  const KeyValue* item = any(key);
  return item == nullptr ? 0 : item->created;
}

bool View::is_gone_since(std::string_view key, Revision revision) const {
  const auto deleted = deleted_.find(key);
  return any(key) == nullptr && std::max(listed_, deleted == deleted_.end() ? 0 : deleted->second) > revision;
}

std::vector<const KeyValue*> View::forged() const {
  std::vector<const KeyValue*> found;
  for (const auto& [key, item] : forged_) found.push_back(&item);
  return found;
}

bool View::apply(const std::vector<WatchEvent>& events) {
  bool changed = false;
  for (const WatchEvent& event : events) {
    const std::string& key = event.item.key;
    const KeyValue* known = any(key);
    const auto deleted = deleted_.find(key);
    const Revision newest = known != nullptr ? known->modified : deleted != deleted_.end() ? deleted->second : listed_;
    if (event.item.modified <= newest) continue;
    revision_ = std::max(revision_, event.item.modified);
    changed = changed || known != nullptr || !event.deleted;
    items_.erase(key);
    forged_.erase(key);
    deleted_.erase(key);
    if (event.deleted) {
      deleted_.emplace(key, event.item.modified);
    } else {
      (event.forged ? forged_ : items_).emplace(key, event.item);
    }
  }
  return changed;
}

bool View::replace(std::vector<KeyValue> items, Revision revision, std::vector<KeyValue> forged) {
  if (revision < revision_) return false;
  const auto by_key = [](std::vector<KeyValue>& list) {
    Items found;
    for (KeyValue& item : list) {
      std::string key = item.key;
      found.emplace(std::move(key), std::move(item));
    }
    return found;
  };
  Items replaced = by_key(items);
  Items replaced_forged = by_key(forged);
  const bool changed = replaced != items_ || replaced_forged != forged_;
  items_ = std::move(replaced);
  forged_ = std::move(replaced_forged);
  deleted_.clear();
  revision_ = listed_ = revision;
  return changed;
}

}  // namespace everstep::elastic
