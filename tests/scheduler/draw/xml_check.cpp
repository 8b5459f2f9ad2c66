#include "tests/scheduler/draw/xml_check.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace everstep::scheduler {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  XmlDocument read() && {
    if (read_element()) take_while([](char c) { return c == '\n'; });
    if (document_.fault.empty() && !text_.empty()) fail("something after the end");
    return std::move(document_);
  }

 private:
  bool fail(const std::string& why) {
    if (document_.fault.empty()) document_.fault = why + " at: " + std::string(text_.substr(0, 40));
    return false;
  }

  bool take(std::string_view expected) {
    if (!text_.starts_with(expected)) return false;
    text_.remove_prefix(expected.size());
    return true;
  }

  template <typename Predicate>
  std::string take_while(Predicate predicate) {
    const auto end = std::find_if_not(text_.begin(), text_.end(), predicate);
    std::string taken(text_.begin(), end);
    text_.remove_prefix(taken.size());
    return taken;
  }

  std::string take_name() {
    return take_while([](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-'; });
  }

  bool is_clean(std::string_view content) {
    constexpr std::array<std::string_view, 5> kEntities{"&lt;", "&gt;", "&amp;", "&quot;", "&apos;"};
    for (std::size_t i = 0; i < content.size(); ++i) {
      const std::string_view rest = content.substr(i);
      const auto starts = [&](std::string_view entity) { return rest.starts_with(entity); };
      if (rest.front() == '>' || rest.front() == '<') return false;
      if (rest.front() == '&' && std::none_of(kEntities.begin(), kEntities.end(), starts)) return false;
    }
    return true;
  }

  bool read_attributes(std::map<std::string, std::string>& attributes) {
    while (take(" ")) {
      const std::string name = take_name();
      if (name.empty() || !take("=\"")) return fail("no attribute");
      const std::string value = take_while([](char c) { return c != '"'; });
      if (!take("\"") || !is_clean(value)) return fail("no value of an attribute");
      if (!attributes.emplace(name, value).second) return fail("an attribute twice");
    }
    return true;
  }

  bool read_element() {
    if (!take("<")) return fail("no element");
    XmlElement element;
    element.name = take_name();
    if (element.name.empty() || !read_attributes(element.attributes)) return fail("no name of an element");
    const std::size_t index = document_.elements.size();
    document_.elements.push_back(element);
    if (take("/>")) return true;
    if (!take(">")) return fail("a tag without an end");
    while (true) {
      const std::string content = take_while([](char c) { return c != '<'; });
      if (!is_clean(content)) return fail("text that is not escaped");
      document_.elements[index].text += content;
      if (take("</" + element.name + ">")) return true;
      if (!read_element()) return false;
    }
  }

  std::string_view text_;
  XmlDocument document_;
};

}  // namespace

XmlDocument read_xml(std::string_view text) { return Reader(text).read(); }

}  // namespace everstep::scheduler
