// Writes a small file whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

/// Writes PATH.part and renames it to PATH. If PATH is a symbolic link, replaces the file that it
/// leads to, which need not exist yet. A pipe, a device or a descriptor (/dev/stdout, /dev/fd/63)
/// is written to and never replaced. Throws kUnavailable, "WHAT PATH cannot be written: No space
/// left on device".
void write_text_file(std::string_view what, const std::string& path, std::string_view text);

/// True for a pipe, a device and a descriptor, to which a text is written without replacing a file.
bool is_written_through(const std::string& path);
/// Returns the reason why write_text_file could make no file beside `path`; empty if it can.
std::string why_none_is_made_beside(const std::string& path);
/// Returns the path to which `path` leads if it is a symbolic link, else `path`.
std::string behind_links(const std::string& path);

}  // namespace paceline
