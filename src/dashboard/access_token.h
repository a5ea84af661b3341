// The token that gives access to the page of a run.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

/// Reads a file of one line: 16 to 256 letters, digits and '-', '.', '_', '~', which its owner
/// alone may read. Throws as read_secret_file does, and kInvalidArgument for another text, which it
/// does not tell.
std::string read_access_token(const std::string& path);

/// Compares in a time that does not depend on where texts of one length differ.
bool is_same_token(std::string_view one, std::string_view other);

}  // namespace paceline
