// The text of an exception of any type, for the user.
#pragma once

#include <exception>
#include <string>

namespace paceline {

/// Returns the message of an Error as it stands. Puts exceptions of libraries in words: a
/// filesystem_error as "PATH: Permission denied", a bad_alloc as "not enough memory for what was
/// asked", and one of the JSON library as "no JSON at line 2, column 5".
std::string failure_text(const std::exception& exception);

}  // namespace paceline
