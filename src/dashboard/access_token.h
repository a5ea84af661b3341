// The token that lets whoever knows it see the page of a run.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

/// Reads a file of one line: 16 to 256 letters, digits and '-', '.', '_', '~', which its owner
/// alone may read. Throws as read_secret_file does, and kInvalidArgument for another text, which it
/// does not tell.
std::string read_access_token(const std::string& path);

/// Takes as long for a wrong text as for the right one of the same length.
bool is_same_token(std::string_view one, std::string_view other);

}  // namespace paceline
