// The size of the machine's memory, and a check whether something fits.
#pragma once

#include <cstdint>
#include <string_view>

namespace paceline {

/// Returns the memory in bytes that this process may use: the machine's, or its control group's if
/// that is less.
std::uint64_t memory_of_machine();

/// Throws kInvalidArgument, "WHAT 58,093 MB, this machine has 25,277 MB", when so many bytes and
/// those that the process has already are more than the machine's, or with those of all processes
/// of its control group more than that allows. To be asked before they are allocated: the system
/// promises more than it has, and kills a process that takes it at its word.
void check_fits_machine(std::string_view what, double bytes);

}  // namespace paceline
