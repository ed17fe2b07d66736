// SPDX-License-Identifier: BSD-3-Clause
// Texts that leave the library.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "machine/error.hpp"

namespace muster {

/// As JSON writes it. Texts of another process may not be UTF-8: what is not ASCII is replaced.
std::string quoted(std::string_view text);

/// True for "json", false for "text" or null. Throws Error(unknown_name).
bool is_json(const char* format);

/// Lines "what it is: value" as one JSON object, with members like "what_it_is"; what is all digits
/// is a number.
std::string lines_as_json(std::string_view text);

/// At most `bytes` characters with the final NUL; `*needed`, if not null: what the whole takes.
Status put_text(std::string_view whole, char* text, std::size_t bytes, std::size_t* needed);

}  // namespace muster
