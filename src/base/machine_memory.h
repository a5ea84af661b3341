// How much memory there is, and whether something fits.
#pragma once

#include <cstdint>
#include <string_view>

namespace paceline {

/// The bytes that this process could have: those of the machine, or of its control group where that
/// has fewer.
std::uint64_t memory_of_machine();

/// Throws kInvalidArgument, "WHAT 58,093 MB, this machine has 25,277 MB", when so many bytes and
/// those that the process has already are more than the machine's, or with those of all processes
/// of its control group more than that allows. To be asked before they are allocated: the system
/// promises more than it has, and kills a process that takes it at its word.
void check_fits_machine(std::string_view what, double bytes);

}  // namespace paceline
