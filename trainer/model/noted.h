#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"

namespace everstep::trainer {

// What was noted on a device between two gatherings, number by number; empty until it has come to the host.
struct NotePage {
  std::vector<std::uint64_t> bits;
};

// A loss, norm, flag or hash (T is double, bool or std::uint64_t) that work on a device makes: known after
// DeviceMemory::gather() and what follows it. What the host made is known at once. Of one thread.
template <typename T>
class Noted {
 public:
  Noted() : Noted(T{}) {}
  Noted(T value) : bits_(bits_of(value)) {}  // NOLINT(google-explicit-constructor): any number will do
  Noted(std::shared_ptr<const NotePage> page, std::size_t place) : page_(std::move(page)), place_(place) {}

  bool is_known() const { return page_ == nullptr || place_ < page_->bits.size(); }

  T value() const {
    EVERSTEP_CHECK(is_known(), "a number is asked for that is still on the device");
    const std::uint64_t bits = page_ == nullptr ? bits_ : page_->bits[place_];
    if constexpr (std::is_same_v<T, bool>) {
      return bits != 0;
    } else {
      return std::bit_cast<T>(bits);
    }
  }

 private:
  static std::uint64_t bits_of(T value) {
    if constexpr (std::is_same_v<T, bool>) {
      return value ? 1 : 0;
    } else {
      return std::bit_cast<std::uint64_t>(value);
    }
  }

  std::uint64_t bits_ = 0;
  std::shared_ptr<const NotePage> page_;  // none: known
  std::size_t place_ = 0;
};

// Whether any of the flags noted so far is set.
class NotedFlags {
 public:
  void add(const Noted<bool>& flag) {
    if (flag.is_known()) {
      is_set_ = is_set_ || flag.value();
    } else {
      pending_.push_back(flag);
    }
  }

  void add(const NotedFlags& flags) {
    is_set_ = is_set_ || flags.is_set_;
    pending_.insert(pending_.end(), flags.pending_.begin(), flags.pending_.end());
  }

  bool any() const {
    bool is_set = is_set_;
    for (const Noted<bool>& flag : pending_) is_set = flag.value() || is_set;
    return is_set;
  }

 private:
  bool is_set_ = false;
  std::vector<Noted<bool>> pending_;
};

}  // namespace everstep::trainer
