#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "elastic/etcd_client.h"

// What the tests of a client of etcd share.
namespace everstep::elastic {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kLong = seconds(20);
const Txn kRead{{}, {get("/a")}};
const Txn kWrite{{}, {put("/a", "1")}};

inline milliseconds time_of(const std::function<void()>& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
}

// The code of what went wrong; kInternal if nothing did.
template <typename Value>
ErrorCode failure(const Result<Value>& result) {
  return result ? ErrorCode::kInternal : result.error().code;
}

inline std::unique_ptr<KvStore> client_of(std::vector<std::string> endpoints) {
  auto store = connect_etcd({.endpoints = std::move(endpoints)});
  EVERSTEP_CHECK(store.ok(), store.error().line());
  return std::move(*store);
}

}  // namespace everstep::elastic
