// The prediction of a command that trains: it makes some steps in one process, and predicts.
#pragma once

#include "tools/subcommand.h"

namespace paceline {

/// The flags of `paceline predict [FLAGS] -- COMMAND`.
CommandLine predicted_command_line();

/// Runs the command after "--" with $PACELINE_PREDICT, which has it print the table of ways by
/// these flags, and waits for it. Throws kUsage, kFailedPrecondition when the command has ended
/// without a prediction, and kCancelled when the user has interrupted it.
void predict_command_of(const Arguments& arguments);

}  // namespace paceline
