// SPDX-License-Identifier: BSD-3-Clause
// Formatting of texts: by the standard library, where it can, else by {fmt}, which
// that was made from. So libmuster needs hwloc alone with a compiler that is new enough.
#pragma once

#include <string>
#include <string_view>
#include <version>

#ifdef __cpp_lib_format
#include <format>
namespace muster {
using std::format;
using std::format_to_n;
}  // namespace muster
#else
#include <fmt/format.h>
namespace muster {
using fmt::format;
using fmt::format_to_n;
}  // namespace muster
#endif

namespace muster {

/// "1 rank", "2 ranks", "1 process", "1 mutex", "4.56 M locks".
template <class Number>
std::string counted(const Number& number, std::string_view many) {
  const std::string text = format("{}", number);
  if (text == "1") many.remove_suffix(many.ends_with("ses") || many.ends_with("xes") ? 2 : 1);
  return text + ' ' + std::string(many);
}

}  // namespace muster
