// Writes a small file whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

/// Writes PATH.part and renames it onto PATH; where PATH is a symbolic link, onto the file that it
/// leads to, which need not be there yet. Nothing else is ever replaced: a pipe, a device or a
/// descriptor (/dev/stdout, /dev/fd/63) is written to. Throws kUnavailable, "WHAT PATH cannot be
/// written: No space left on device".
void write_text_file(std::string_view what, const std::string& path, std::string_view text);

/// True for a pipe, a device and a descriptor: a text that goes there takes no file's place.
bool is_written_through(const std::string& path);
/// Returns why no file can be made beside `path`, as write_text_file does; empty: one can.
std::string why_none_is_made_beside(const std::string& path);
/// Returns the path to which `path` leads if it is a symbolic link, else `path`.
std::string behind_links(const std::string& path);

}  // namespace paceline
