#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "elastic/kv_store.h"

namespace everstep::elastic {

// What a process believes the store holds below one prefix: kept up by watch events, replaced by a list now and then.
// Being wrong costs a refused transaction, never more.
class View {
 public:
  // nullptr if it is not there. Valid until the view changes.
  const KeyValue* find(std::string_view key) const;

  // All keys that start so, ascending.
  std::vector<const KeyValue*> below(std::string_view prefix) const;

  Revision modified(std::string_view key) const;  // 0: not there
  Revision created(std::string_view key) const;

  // Events that are older than what is known change nothing. Tells whether anything changed.
  bool apply(const std::vector<WatchEvent>& events);

  // Replaces everything by a list that was read at that revision. One that is older than the view is ignored.
  bool replace(std::vector<KeyValue> items, Revision revision);

  // When something was read or heard last.
  Revision revision() const { return revision_; }

 private:
  std::map<std::string, KeyValue, std::less<>> items_;
  Revision revision_ = 0;
  Revision listed_ = 0;  // of the last list: what it did not hold was not there then
};

}  // namespace everstep::elastic
