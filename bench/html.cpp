// SPDX-License-Identifier: BSD-3-Clause
#include "bench/html.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "topology/picture.hpp"

namespace muster::bench {
namespace {

constexpr const char* style = R"(
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #fff; --faint: #666; --line: #d8d8d8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --paper: #16181b; --faint: #a0a0a0;
  --line: #3a3d42; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 62rem; margin: 0 auto; padding: 1rem; overflow-wrap: break-word; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-top: 1px solid var(--line);
  padding-top: 1rem; }
.lead { font-size: 1.1rem; } .faint { color: var(--faint); font-size: .875rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .2rem .9rem .2rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; } td.n, th.n { text-align: right; } td.n { white-space: nowrap; }
td:last-child:not(.n) { overflow-wrap: anywhere; min-width: 9rem; }
figure { margin: 1rem 0; overflow-x: auto; }
figure img { background: #fff; border-radius: 6px; padding: .5rem; box-sizing: border-box;
  width: 100%; min-width: 38rem; display: block; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid var(--line); border-radius: 6px;
  font-size: .8125rem; } pre.again { white-space: pre-wrap; }
@media print { body { max-width: none; } figure img { min-width: 0;
  max-height: 22cm; object-fit: contain; }
  pre { white-space: pre-wrap; } pre, table { font-size: .6875rem; }
  th, td { padding-right: .5rem; } td:last-child:not(.n) { min-width: 0; }
  .wide, figure, pre { overflow: visible; } h2, h3 { break-after: avoid; }
  figure, table { break-inside: avoid; } }
)";

}  // namespace

std::string cell(const nlohmann::ordered_json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return "";
  return escaped(found->is_string() ? found->get<std::string>() : found->dump());
}

std::string image(const std::string& svg, const std::string& about) {
  std::string data;
  for (const char c : svg) {
    if (std::string_view("%#\"<>&\n\r\t").find(c) == std::string_view::npos) {
      data += c;
    } else {
      data += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return fmt::format(
      "<figure><img alt=\"{}\" src=\"data:image/svg+xml;charset=utf-8,{}\"></figure>\n",
      escaped(about), data);
}

std::string table(const std::vector<std::string>& header,
                  const std::vector<std::vector<std::string>>& rows) {
  const auto is_number = [&](std::size_t column) { return header[column].starts_with("#"); };
  std::string text = "<div class=wide><table><tr>";
  for (std::size_t c = 0; c < header.size(); ++c)
    text += fmt::format("<th{}>{}</th>", is_number(c) ? " class=n" : "",
                        header[c].substr(is_number(c) ? 1 : 0));
  for (const auto& row : rows) {
    text += "</tr>\n<tr>";
    for (std::size_t c = 0; c < row.size(); ++c)
      text += fmt::format("<td{}>{}</td>", is_number(c) ? " class=n" : "", row[c]);
  }
  return text + "</tr></table></div>\n";
}

std::string html_page(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<meta name=viewport "
      "content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n"
      "<style>{1}</style>\n<h1>{0}</h1>\n{2}</html>\n",
      escaped(title), style, body);
}

}  // namespace muster::bench
