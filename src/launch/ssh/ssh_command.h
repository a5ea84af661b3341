// The command that runs a program on another host, and its failures in words.
#pragma once

#include <string>
#include <vector>

#include "launch/ssh/ssh_options.h"

namespace paceline {

/// Returns the command line that starts a launcher's agent on the host by ssh. That ssh asks the
/// user nothing, and gives up a host that does not answer.
std::vector<std::string> ssh_words(const SshOptions& options, const SshHost& host);

/// Returns a sentence about a host that could not be reached, from the output of ssh and its exit
/// status: it names the host, quotes ssh, and says what to do.
std::string why_not_reached(const SshOptions& options, const SshHost& host,
                            const std::string& written, int status);
/// Returns why the connection to a host was lost.
std::string why_lost(const SshHost& host, const std::string& written);

}  // namespace paceline
