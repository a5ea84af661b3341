// The agent of a launcher on another host, where ssh starts it.
#pragma once

#include <string>

namespace paceline {

/// `paceline launch --agent` runs the agent. Users never type it.
extern const char* const kAgentWord;

/// Returns the first line that an agent writes. All output before it comes from the user's shell.
std::string agent_greeting();

/// Carries out the commands that the launcher sends through the standard streams. When these
/// streams end, the agent ends the remaining tasks with all processes that they have started, and
/// kills those that do not end in time. Returns the exit status.
int run_agent();

}  // namespace paceline
