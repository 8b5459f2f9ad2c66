#include "storage/hdf5/hdf5_object_check.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace everstep::storage {
namespace {

bool equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace

std::string quoted_name(std::string_view name) {
  std::string text = "'";
  for (const char c : name) text += c >= ' ' && c <= '~' ? c : '?';
  return text + "'";
}

Hdf5ObjectCheck::Hdf5ObjectCheck(std::string object, AttributeMessages attributes)
    : object_(std::move(object)), missing_attributes_(std::move(attributes)) {}

Status Hdf5ObjectCheck::must_be(std::span<const std::byte> found, const MessageBody& expected, Hdf5MessageType type,
                                const std::string& otherwise) {
  EVERSTEP_TRY(once(type));
  if (!equal(found, expected)) return damaged("has " + object_ + " with " + otherwise);
  return {};
}

Status Hdf5ObjectCheck::once(Hdf5MessageType type) {
  if (seen_.insert(type).second) return {};
  return damaged("has two messages of one kind for " + object_);
}

Status Hdf5ObjectCheck::attribute(std::span<const std::byte> body) {
  constexpr std::size_t kVersionAndFlags = 2;
  constexpr std::size_t kSizesAndCharacterSet = 5;
  Hdf5Cursor cursor(body);
  cursor.take(kVersionAndFlags);
  const std::uint64_t name_size = cursor.number(2);
  cursor.take(kSizesAndCharacterSet);
  std::string_view name = cursor.text(name_size);
  if (!cursor.ok() || !name.ends_with('\0')) return damaged("has a malformed attribute at " + object_);
  name.remove_suffix(1);
  const auto expected = missing_attributes_.find(name);
  if (expected == missing_attributes_.end()) {
    return damaged("has an unexpected attribute " + quoted_name(name) + " at " + object_);
  }
  if (!equal(body, expected->second)) {
    return damaged("has another attribute " + quoted_name(name) + " at " + object_ + " than expected");
  }
  missing_attributes_.erase(expected);
  return {};
}

Status Hdf5ObjectCheck::complete(std::initializer_list<Hdf5MessageType> types) const {
  for (const Hdf5MessageType type : types) {
    if (!seen_.contains(type)) return damaged("lacks a part of the header of " + object_);
  }
  if (missing_attributes_.empty()) return {};
  return damaged("lacks the attribute '" + missing_attributes_.begin()->first + "' at " + object_);
}

Error Hdf5ObjectCheck::unexpected(Hdf5MessageType type) const {
  return damaged("has a message of the unexpected type " + std::to_string(static_cast<int>(type)) +
                 " in the header of " + object_);
}

}  // namespace everstep::storage
