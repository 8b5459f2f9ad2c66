#include "elastic/etcd_cpp_api/txn_reads.h"

#include <map>
#include <string>
#include <string_view>

namespace everstep::elastic {
namespace {

bool touches(const KvOp& op, std::string_view key) {
  return op.kind == KvOp::Kind::kList ? key.starts_with(op.key) : op.kind == KvOp::Kind::kGet && key == op.key;
}

// When each key is put; etcd takes no branch that puts one twice.
std::map<std::string, std::size_t> puts_of(const std::vector<KvOp>& branch) {
  std::map<std::string, std::size_t> puts;
  for (std::size_t at = 0; at < branch.size(); ++at) {
    if (branch[at].kind == KvOp::Kind::kPut) puts[branch[at].key] = at;
  }
  return puts;
}

}  // namespace

Result<std::vector<std::vector<KeyValue>>> deal_out_reads(const std::vector<KvOp>& branch,
                                                          const std::vector<KeyValue>& items, Revision revision) {
  const auto puts = puts_of(branch);
  // An item that was there already when an earlier operation read would have been read by it, too. So each belongs to
  // the first operation, from the one at hand on, that can have seen it.
  const auto may_have_read = [&](std::size_t at, const std::vector<KeyValue>& read, const KeyValue& item) {
    if (!touches(branch[at], item.key) || (!read.empty() && item.key <= read.back().key)) return false;
    const auto put = puts.find(item.key);
    return put == puts.end() || (put->second < at) == (item.modified == revision);
  };
  std::vector<std::vector<KeyValue>> reads(branch.size());
  std::size_t at = 0;
  for (const KeyValue& item : items) {
    while (at < branch.size() && !may_have_read(at, reads[at], item)) ++at;
    if (at == branch.size()) {
      return Error{ErrorCode::kDataLoss, "etcd's answer to a transaction does not fit what was asked", {}};
    }
    reads[at].push_back(item);
  }
  return reads;
}

}  // namespace everstep::elastic
