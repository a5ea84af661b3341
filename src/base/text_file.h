// A small file that is there whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

/// As PATH.part first, which then takes the name; of a link, that of the file it leads to. A pipe
/// or a device is written as it is. Throws kUnavailable, "WHAT PATH cannot be written: No space
/// left on device".
void write_text_file(std::string_view what, const std::string& path, std::string_view text);

}  // namespace paceline
