#include "storage/json/document_reader.h"

#include <limits>

#include "storage/json/document_values.h"

namespace everstep::storage {

DocumentReader::DocumentReader(const JsonReader& place, std::optional<Error>& complaint, Members members)
    : place_(place), complaint_(complaint) {
  if (complaint_) return;
  if (const Status status = place_.only(members); !status) complaint_ = status.error();
}

void DocumentReader::complain(std::string_view name, std::string_view what) {
  if (complaint_) return;
  const auto member = place_.member(name);
  complaint_ = member ? member->error(what) : member.error();
}

template <typename Value>
Value DocumentReader::take(Result<Value> result) {
  if (complaint_) return Value{};
  if (result) return std::move(result).value();
  complaint_ = result.error();
  return Value{};
}

const Json* DocumentReader::find(std::string_view name) {
  if (complaint_) return nullptr;
  const Json* found = place_.json().find(name);
  if (found == nullptr) complain(name, "missing");
  return found;
}

const Json::Array& DocumentReader::array(std::string_view name, std::size_t most) {
  static const Json::Array none;
  const Json* json = find(name);
  if (json == nullptr) return none;
  const auto* elements = std::get_if<Json::Array>(&json->value());
  if (elements != nullptr && elements->size() <= most) return *elements;
  complain(name, "expected an array of at most " + std::to_string(most) + " elements");
  return none;
}

std::int64_t DocumentReader::integer(std::string_view name, std::int64_t min, std::int64_t max) {
  return take(place_.integer_at(name, min, max));
}

int DocumentReader::small_integer(std::string_view name, int min, int max) {
  return static_cast<int>(integer(name, min, max));
}

bool DocumentReader::boolean(std::string_view name) { return take(place_.boolean_at(name)); }

std::string DocumentReader::text(std::string_view name, std::size_t longest) {
  std::string content = take(place_.text_at(name));
  if (content.size() <= longest) return content;
  complain(name, "has " + std::to_string(content.size()) + " bytes, the limit is " + std::to_string(longest));
  return {};
}

Digest DocumentReader::digest(std::string_view name) {
  return parsed(name, parse_digest, "64 lower-case hexadecimal digits");
}

std::optional<Digest> DocumentReader::digest_or_null(std::string_view name) {
  const Json* json = find(name);
  if (json == nullptr || *json == Json(nullptr)) return std::nullopt;
  return digest(name);
}

std::optional<double> DocumentReader::double_or_null(std::string_view name) {
  const Json* json = find(name);
  if (json == nullptr || *json == Json(nullptr)) return std::nullopt;
  const auto value = parse_double(*json);
  if (!value) complain(name, "expected a number with a point, the bits of a NaN or infinity, or null");
  return value;
}

std::vector<double> DocumentReader::doubles(std::string_view name, std::size_t most) {
  std::vector<double> values;
  for (const Json& element : array(name, most)) {
    const auto value = parse_double(element);
    if (!value) {
      complain(name, "element " + std::to_string(values.size()) +
                         ": expected a number with a point, or the bits of a NaN or infinity");
      return {};
    }
    values.push_back(*value);
  }
  return values;
}

std::vector<int> DocumentReader::small_integers(std::string_view name, std::size_t most) {
  std::vector<int> values;
  for (const Json& element : array(name, most)) {
    const auto* value = std::get_if<std::int64_t>(&element.value());
    if (value == nullptr || *value < 0 || *value > std::numeric_limits<int>::max()) {
      complain(name, "element " + std::to_string(values.size()) + ": expected an integer of at least 0");
      return {};
    }
    values.push_back(static_cast<int>(*value));
  }
  return values;
}

std::vector<std::int64_t> DocumentReader::windows(std::string_view name, std::size_t most) {
  auto windows = parse_windows(array(name, most), most);
  if (windows) return std::move(windows).value();
  complain(name, windows.error().message);
  return {};
}

std::vector<std::pair<std::string, std::string>> DocumentReader::texts(std::string_view name, std::size_t most,
                                                                       std::size_t longest) {
  const Json* json = find(name);
  if (json == nullptr) return {};
  const auto* members = std::get_if<Json::Object>(&json->value());
  if (members == nullptr || members->size() > most) {
    complain(name, "expected an object of at most " + std::to_string(most) + " members");
    return {};
  }
  std::vector<std::pair<std::string, std::string>> values;
  for (const JsonMember& member : *members) {
    const auto* value = std::get_if<std::string>(&member.value.value());
    if (value == nullptr || value->size() > longest) {
      complain(name, "member " + std::to_string(values.size()) + ": expected a string of at most " +
                         std::to_string(longest) + " bytes");
      return {};
    }
    values.emplace_back(member.name, *value);
  }
  return values;
}

DocumentReader DocumentReader::object(std::string_view name, Members members) {
  const auto member = complaint_ ? place_ : place_.member(name);
  if (!member && !complaint_) complaint_ = member.error();
  return {member ? *member : place_, complaint_, members};
}

std::vector<DocumentReader> DocumentReader::objects(std::string_view name, std::size_t most, Members members) {
  array(name, most);  // complains before a reader per element is made
  if (complaint_) return {};
  std::vector<DocumentReader> readers;
  for (const JsonReader& element : take(place_.elements_at(name))) {
    readers.emplace_back(element, complaint_, members);
  }
  return readers;
}

}  // namespace everstep::storage
