#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/hashing.h"
#include "storage/json/json_reader.h"
#include "storage/manifest.h"

namespace everstep::storage {

// Reads the members of one object of a document, and refuses others. The first complaint is kept, and what is read
// after it is a default: a function that reads twenty members asks once, at its end, whether there was one. Counts are
// compared with their bounds before anything of that size is made. It refers to the value and the complaint it was made
// with, which must outlive it.
class DocumentReader {
 public:
  using Members = std::initializer_list<std::string_view>;

  DocumentReader(const JsonReader& place, std::optional<Error>& complaint, Members members);

  // For members that are there only where they have something to tell.
  bool has(std::string_view name) const { return !complaint_ && place_.json().find(name) != nullptr; }

  std::int64_t integer(std::string_view name, std::int64_t min, std::int64_t max);
  int small_integer(std::string_view name, int min, int max);
  bool boolean(std::string_view name);
  std::string text(std::string_view name, std::size_t longest);

  // What `parse` makes of a text; "checkpoint: expected <what>" if that is nothing.
  template <typename Value>
  Value parsed(std::string_view name, std::optional<Value> (*parse)(std::string_view), std::string_view what) {
    const std::string content = text(name, kLongestParsed);
    if (complaint_) return Value{};
    const auto value = parse(content);
    if (!value) complain(name, "expected " + std::string(what));
    return value.value_or(Value{});
  }

  Digest digest(std::string_view name);
  std::optional<Digest> digest_or_null(std::string_view name);
  std::optional<double> double_or_null(std::string_view name);
  std::vector<double> doubles(std::string_view name, std::size_t most);
  std::vector<int> small_integers(std::string_view name, std::size_t most);
  std::vector<std::int64_t> windows(std::string_view name, std::size_t most);

  // The members of an object whose values are texts, in their order. Their names are bounded by the caller's check.
  std::vector<std::pair<std::string, std::string>> texts(std::string_view name, std::size_t most, std::size_t longest);

  DocumentReader object(std::string_view name, Members members);
  std::vector<DocumentReader> objects(std::string_view name, std::size_t most, Members members);

  bool failed() const { return complaint_.has_value(); }
  void complain(std::string_view name, std::string_view what);

 private:
  static constexpr std::size_t kLongestParsed = 1000;

  template <typename Value>
  Value take(Result<Value> result);
  const Json* find(std::string_view name);
  const Json::Array& array(std::string_view name, std::size_t most);

  JsonReader place_;
  std::optional<Error>& complaint_;
};

}  // namespace everstep::storage
