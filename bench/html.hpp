// SPDX-License-Identifier: BSD-3-Clause
// What pages are made of: narrow and wide, light and dark, on paper, and without a network.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace muster::bench {

/// A value as people read it, its text escaped(); "" for null and what is missing.
std::string cell(const nlohmann::ordered_json& object, const char* name);

/// An SVG inside the page; from an <img> it cannot reach anything outside, nor of the page.
std::string image(const std::string& svg, const std::string& about);

/// Cells are HTML. A column whose header begins with '#' has numbers.
std::string table(const std::vector<std::string>& header,
                  const std::vector<std::vector<std::string>>& rows);

/// `body` is HTML, the title is text.
std::string html_page(const std::string& title, const std::string& body);

}  // namespace muster::bench
