#include "storage/hdf5/hdf5_messages.h"

#include <algorithm>
#include <initializer_list>

#include "base/check.h"
#include "storage/hdf5/hdf5_header.h"

namespace everstep::storage {
namespace {

// Format specification of HDF5, section IV.A.2; numbers are little-endian.
constexpr std::uint8_t kInteger = 0x10;  // class 0, version 1
constexpr std::uint8_t kFloat = 0x11;
constexpr std::uint8_t kString = 0x13;

class BodyWriter final {
 public:
  BodyWriter& bytes(std::initializer_list<std::uint8_t> values) {
    for (const std::uint8_t value : values) body_.push_back(std::byte{value});
    return *this;
  }
  BodyWriter& number(std::uint64_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) body_.push_back(static_cast<std::byte>(value >> (8 * i)));
    return *this;
  }
  BodyWriter& text(std::string_view text) {
    for (const char c : text) body_.push_back(static_cast<std::byte>(c));
    return *this;
  }
  BodyWriter& body(const MessageBody& other) {
    body_.insert(body_.end(), other.begin(), other.end());
    return *this;
  }
  MessageBody done() { return std::move(body_); }

 private:
  MessageBody body_;
};

// `sign` is 8 for signed ones.
MessageBody integer_type(std::uint64_t bytes, std::uint8_t sign) {
  return BodyWriter().bytes({kInteger, sign, 0, 0}).number(bytes, 4).number(0, 2).number(8 * bytes, 2).done();
}

MessageBody attribute_message(std::string_view name, const MessageBody& type, const MessageBody& value) {
  const MessageBody scalar = dataspace_message({});
  return BodyWriter()
      .bytes({3, 0})
      .number(name.size() + 1, 2)
      .number(type.size(), 2)
      .number(scalar.size(), 2)
      .bytes({0})  // ASCII
      .text(name)
      .bytes({0})
      .body(type)
      .body(scalar)
      .body(value)
      .done();
}

}  // namespace

MessageBody datatype_message(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return BodyWriter()
          .bytes({kFloat, 0x20, 31, 0})  // an implied leading bit, the sign at bit 31
          .number(4, 4)
          .number(0, 2)
          .number(32, 2)
          .bytes({23, 8, 0, 23})  // exponent of 8 bits at 23, mantissa of 23 bits at 0
          .number(127, 4)
          .done();
    case ElementType::kBfloat16:
      return integer_type(2, 0);
    case ElementType::kInt64:
      return integer_type(8, 8);
  }
  check_failed(__FILE__, __LINE__, "a known type", "no such element type");
}

MessageBody dataspace_message(std::span<const std::int64_t> shape) {
  if (shape.empty()) return BodyWriter().bytes({2, 0, 0, 0}).done();
  BodyWriter writer;
  writer.bytes({2, static_cast<std::uint8_t>(shape.size()), 1, 1});
  for (int current_and_largest = 0; current_and_largest < 2; ++current_and_largest) {
    for (const std::int64_t dimension : shape) writer.number(static_cast<std::uint64_t>(dimension), 8);
  }
  return writer.done();
}

MessageBody fill_value_message() { return BodyWriter().bytes({3, 0x05}).done(); }
MessageBody link_info_message() {
  return BodyWriter().bytes({0, 0}).number(kNoAddress, 8).number(kNoAddress, 8).done();
}
MessageBody attribute_info_message() { return link_info_message(); }

MessageBody text_attribute_message(std::string_view name, std::string_view text) {
  const std::size_t size = std::max<std::size_t>(text.size(), 1);
  MessageBody value = BodyWriter().text(text).done();
  value.resize(size);
  return attribute_message(name, BodyWriter().bytes({kString, 1, 0, 0}).number(size, 4).done(), value);
}

MessageBody number_attribute_message(std::string_view name, std::int64_t number) {
  return attribute_message(name, datatype_message(ElementType::kInt64),
                           BodyWriter().number(static_cast<std::uint64_t>(number), 8).done());
}

}  // namespace everstep::storage
