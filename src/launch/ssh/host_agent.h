// The agent of a launcher on another host, as ssh starts it there.
#pragma once

#include <string>

namespace paceline {

/// `paceline launch --agent` is that agent. No user types it.
extern const char* const kAgentWord;

/// Returns the first line that an agent writes. The output of the user's shell ends before it.
std::string agent_greeting();

/// Does what the launcher says that is at the other end of the standard streams, until that says no
/// more: then it ends the tasks that are left, and kills those that do not end in time, with all
/// that they have started. Returns the exit status.
int run_agent();

}  // namespace paceline
