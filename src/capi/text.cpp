// SPDX-License-Identifier: BSD-3-Clause
#include "capi/text.hpp"

#include <algorithm>

#include "machine/format.hpp"

namespace muster {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte > 0x7e) {
      out += format("\\u{:04x}", byte < 0x80 ? byte : 0xfffdU);
    } else {
      out += c;
    }
  }
  return out + '"';
}

bool is_json(const char* format) {
  const std::string_view as = format != nullptr ? format : "text";
  if (as != "text" && as != "json") throw Error(Status::unknown_name, "formats are: text, json");
  return as == "json";
}

std::string lines_as_json(std::string_view text) {
  std::string members;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t colon = line.find(": ");
    std::string name(line.substr(0, colon));
    std::replace(name.begin(), name.end(), ' ', '_');
    const std::string_view value =
        colon == std::string_view::npos ? std::string_view() : line.substr(colon + 2);
    const bool is_number =
        !value.empty() && value.find_first_not_of("0123456789") == std::string_view::npos;
    members += format("{}{}:{}", members.empty() ? "" : ",", quoted(name),
                      is_number ? std::string(value) : quoted(value));
  }
  return "{" + members + "}";
}

Status put_text(std::string_view whole, char* text, std::size_t bytes, std::size_t* needed) {
  if (text == nullptr && bytes > 0) throw Error(Status::invalid, "no place for the text");
  if (needed != nullptr) *needed = whole.size() + 1;
  if (bytes > 0) text[whole.copy(text, bytes - 1)] = '\0';
  return Status::ok;
}

}  // namespace muster
