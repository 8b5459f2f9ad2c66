#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "elastic/kv_store.h"

namespace everstep::elastic {

// What a process believes the store holds below one prefix: kept up by watch events, replaced by a list now and then.
// Being wrong costs a refused transaction, never more. What is forged cannot be found: to whoever looks for a record it
// is not there. Its revisions are told, so that a transaction may put something better in its place.
class View {
 public:
  // nullptr if it is not there. Valid until the view changes.
  const KeyValue* find(std::string_view key) const;

  // All keys that start so, ascending.
  std::vector<const KeyValue*> below(std::string_view prefix) const;

  Revision modified(std::string_view key) const;  // 0: not there, not even forged
  Revision created(std::string_view key) const;

  bool is_forged(std::string_view key) const { return forged_.contains(key); }
  // Whether the key was deleted after that revision: an event said so, or a list that was read later does not hold it.
  // A key that is missing otherwise may only be missing in this view.
  bool is_gone_since(std::string_view key, Revision revision) const;

  // Keys ascending, without values.
  std::vector<const KeyValue*> forged() const;

  // Events that are older than what is known change nothing. Tells whether anything changed.
  bool apply(const std::vector<WatchEvent>& events);

  // Replaces everything by a list that was read at that revision. One that is older than the view is ignored.
  bool replace(std::vector<KeyValue> items, Revision revision, std::vector<KeyValue> forged = {});

  // When something was read or heard last.
  Revision revision() const { return revision_; }

 private:
  using Items = std::map<std::string, KeyValue, std::less<>>;

  const KeyValue* any(std::string_view key) const;

  Items items_;
  Items forged_;
  std::map<std::string, Revision, std::less<>> deleted_;  // since the last list
  Revision revision_ = 0;
  Revision listed_ = 0;  // of the last list: what it did not hold was not there then
};

}  // namespace everstep::elastic
