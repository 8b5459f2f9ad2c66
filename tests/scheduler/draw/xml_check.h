#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace everstep::scheduler {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  // directly inside; markup stays escaped
};

struct XmlDocument {
  std::vector<XmlElement> elements;  // in the order of their start tags
  std::string fault;                 // what is not well-formed; empty if nothing is
};

// Reads one XML element with what is inside it, in a strict part of XML: no prolog, comments or CDATA.
XmlDocument read_xml(std::string_view text);

inline std::string xml_fault(std::string_view text) { return read_xml(text).fault; }

}  // namespace everstep::scheduler
