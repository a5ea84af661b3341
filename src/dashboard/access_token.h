// The token that gives access to the page of a run.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

/// Reads the token from a file of one line that only its owner may read: 16 to 256 letters, digits
/// and '-', '.', '_', '~'. Throws as read_secret_file does, and kInvalidArgument for any other
/// text, which the message does not quote.
std::string read_access_token(const std::string& path);

/// Compares the texts in a time that depends on their lengths only, and not on where they differ.
bool is_same_token(std::string_view one, std::string_view other);

}  // namespace paceline
