// The agent of a launcher on another host, as ssh starts it there.
#pragma once

#include <string>

namespace paceline {

/// `paceline launch --agent` is that agent. No user types it.
extern const char* const kAgentWord;

/// Returns the first line that an agent writes. The output of the user's shell ends before it.
std::string agent_greeting();

/// Carries out the commands that the launcher sends through the standard streams. When these end,
/// it ends the remaining tasks with all that they have started, and kills those that do not end in
/// time. Returns the exit status.
int run_agent();

}  // namespace paceline
