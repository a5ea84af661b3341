// Guesses which flag a user meant by an unknown one.
#pragma once

#include <string>
#include <string_view>

#include "cli/flags/command_line.h"

namespace paceline {

/// Returns the end of a message about a flag that this command line does not know, such as
/// "--max-steps":
/// - the flag that scripts of TensorFlow and PyTorch mean by it: "; here it is --steps N";
/// - what to do without a flag that 0.1.0 had: "; it is gone: …";
/// - how to give a hyper-parameter: "; a hyper-parameter is given as --set learning_rate=VALUE";
/// - or the nearest flag: "; did you mean '--save-every'?".
///
/// Empty if nothing resembles the flag.
std::string unknown_flag_hint(const CommandLine& line, std::string_view name);

}  // namespace paceline
