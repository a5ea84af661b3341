// The limits of a process (ulimit) that are behind an error.
#pragma once

#include <exception>
#include <string>

namespace paceline {

/// "; ulimit -n allows this process 64 open files", when the error says that descriptors, threads
/// or memory ran out and a limit of this process is behind it; else empty.
std::string limit_behind(const std::exception& error);

}  // namespace paceline
