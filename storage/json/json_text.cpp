#include <array>
#include <charconv>

#include <nlohmann/json.hpp>

#include "storage/json/json.h"

namespace everstep::storage {
namespace {

class Writer {
 public:
  explicit Writer(std::size_t indent) : indent_(indent) {}

  std::string take() { return std::move(text_); }

  void operator()(std::nullptr_t) { text_ += "null"; }
  void operator()(bool value) { text_ += value ? "true" : "false"; }
  void operator()(std::int64_t value) { text_ += std::to_string(value); }

  void operator()(double value) {
    std::array<char, 32> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
    const std::string_view digits(buffer.data(), end);
    text_ += digits;
    // Without a point or an exponent it would come back as an integer.
    if (digits.find_first_of(".e") == std::string_view::npos) text_ += ".0";
  }

  void operator()(const std::string& value) {
    text_ += nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  void operator()(const Json::Array& elements) {
    write_list('[', ']', elements, [this](const Json& element) { std::visit(*this, element.value()); });
  }

  void operator()(const Json::Object& members) {
    write_list('{', '}', members, [this](const JsonMember& member) {
      (*this)(member.name);
      text_ += indent_ == 0 ? ":" : ": ";
      std::visit(*this, member.value.value());
    });
  }

 private:
  template <typename Items, typename WriteItem>
  void write_list(char open, char close, const Items& items, WriteItem write_item) {
    text_ += open;
    ++level_;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) text_ += ',';
      start_line();
      write_item(items[i]);
    }
    --level_;
    if (!items.empty()) start_line();
    text_ += close;
  }

  void start_line() {
    if (indent_ > 0) text_.append("\n").append(level_ * indent_, ' ');
  }

  std::string text_;
  std::size_t indent_;
  std::size_t level_ = 0;
};

}  // namespace

std::string to_text(const Json& json, std::size_t indent) {
  Writer writer(indent);
  std::visit(writer, json.value());
  return writer.take();
}

}  // namespace everstep::storage
