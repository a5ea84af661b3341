// The files of data that is generated.
#pragma once

#include <span>
#include <string>

namespace paceline {

/// Makes the folder, if it is not there. Throws kNotFound when that fails, and kFailedPrecondition
/// when one of the files is there already: it may be the real data.
void make_folder_for(const std::string& folder, std::span<const char* const> files);

}  // namespace paceline
