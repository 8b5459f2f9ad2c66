#pragma once

#include <cstddef>
#include <initializer_list>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "storage/hdf5/hdf5_header.h"
#include "storage/hdf5/hdf5_messages.h"

namespace everstep::storage {

// A name from a file, which may hold anything, for an error message.
std::string quoted_name(std::string_view name);

using AttributeMessages = std::map<std::string, MessageBody, std::less<>>;

// Watches over the messages of one object: each that must be there is there once and exactly so, and the attributes are
// the expected ones.
class Hdf5ObjectCheck final {
 public:
  Hdf5ObjectCheck(std::string object, AttributeMessages attributes);

  // "… has <object> with <otherwise>" when the message is another one.
  Status must_be(std::span<const std::byte> found, const MessageBody& expected, Hdf5MessageType type,
                 const std::string& otherwise);
  Status once(Hdf5MessageType type);
  Status attribute(std::span<const std::byte> body);

  // After the last message: these types and all attributes were there.
  Status complete(std::initializer_list<Hdf5MessageType> types) const;

  Error unexpected(Hdf5MessageType type) const;

 private:
  std::string object_;
  AttributeMessages missing_attributes_;
  std::set<Hdf5MessageType> seen_;
};

}  // namespace everstep::storage
