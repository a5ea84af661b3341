// The files of data that is generated.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace paceline {

/// Makes the folder if it does not exist. Throws kNotFound if that fails; kFailedPrecondition if
/// one of the files exists already, since it may hold real data; and kInvalidArgument if the disk
/// has no room for `records` records of about `bytes_each` bytes.
void make_folder_for(const std::string& folder, std::span<const char* const> files,
                     std::int64_t records, std::int64_t bytes_each);

}  // namespace paceline
