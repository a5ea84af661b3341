// The size of the machine's memory, and a check whether something fits.
#pragma once

#include <cstdint>
#include <string_view>

namespace paceline {

/// Returns the bytes of memory that this process may use: the machine's memory, or the limit of its
/// control group if that is less.
std::uint64_t memory_of_machine();

/// Throws kInvalidArgument, "WHAT 58,093 MB, this machine has 25,277 MB", if `bytes` and the memory
/// that the process already has exceed the machine's, or if `bytes` and the memory of all processes
/// of its control group exceed the group's limit. Call it before the memory is allocated: the
/// system promises more than it has, and kills a process that uses all of it.
void check_fits_machine(std::string_view what, double bytes);

}  // namespace paceline
