// The files of data that is generated.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace paceline {

/// Makes the folder, if it is not there. Throws kNotFound when that fails, kFailedPrecondition when
/// one of the files is there already, since it may be the real data, and kInvalidArgument when the
/// disk has no room for `records` of about so many bytes each.
void make_folder_for(const std::string& folder, std::span<const char* const> files,
                     std::int64_t records, std::int64_t bytes_each);

}  // namespace paceline
