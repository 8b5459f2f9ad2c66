#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "elastic/kv_store.h"

namespace everstep::elastic {

struct EtcdOptions {
  std::vector<std::string> endpoints;  // "http://127.0.0.1:2379", "https://[::1]:2379"
  // PEM texts, not names of files. https needs `ca`; `certificate` and `key` say who we are.
  std::string ca{};
  std::string certificate{};
  std::string key{};
  bool allow_plain_text = false;  // http also to other hosts, where anybody on the way can read and forge
};

// A client of one etcd cluster; which library talks to it is chosen when Everstep is built (EVERSTEP_ETCD_CLIENT).
// kInvalidArgument: the options make no sense; nothing is sent before the first call.
// A call goes to one server after the other, with at most 500 ms each, until one answers or its deadline is over. What
// may have been executed is sent again only if that changes nothing: transactions that write are not.
Result<std::unique_ptr<KvStore>> connect_etcd(const EtcdOptions& options);

}  // namespace everstep::elastic
