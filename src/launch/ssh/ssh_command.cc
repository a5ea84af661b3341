#include "launch/ssh/ssh_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <string_view>

#include "base/plain_text.h"
#include "launch/ssh/host_agent.h"
#include "run/report/circumstances.h"

namespace paceline {

namespace {

constexpr int kConnectSeconds = 10;
constexpr int kMostSilentProbes = 3;

std::string last_line_of(const std::string& written) {
  std::istringstream lines(written);
  std::string last = "it said nothing";
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '.'))
      line.pop_back();
    if (!line.empty()) last = plain_text(line);
  }
  return last;
}

std::string remedy(const SshOptions& options, const SshHost& host, const std::string& written,
                   int status) {
  const auto says = [&](std::string_view text) { return written.find(text) != written.npos; };
  const std::string by_hand = fmt::format("{} {}", options.program, host.destination());
  if (says("IDENTIFICATION HAS CHANGED")) {
    return fmt::format(
        "if the host was installed anew, ssh-keygen -R {0} forgets its old key, and {1} asks for "
        "the new one",
        host.name, by_hand);
  }
  if (says("Host key verification failed"))
    return fmt::format("connect once by hand ({}), and compare and accept its key", by_hand);
  if (says("Permission denied ("))
    return fmt::format("ssh-copy-id {} puts your key there, and --ssh 'ssh -i FILE' names another",
                       host.destination());
  if (says("Could not resolve hostname"))
    return "give --hosts names or addresses that all hosts know";
  if (says("connect to host"))
    return "check that the host is up and runs sshd; --ssh 'ssh -p PORT' names another port";
  if (says(options.paceline)) {
    return fmt::format("install this version of paceline there, too, as {}", options.paceline);
  }
  if (status == 127 || status == 126)
    return "--ssh names a program that runs commands, as ssh does";
  return fmt::format("check that {} true works and asks nothing", by_hand);
}

}  // namespace

std::vector<std::string> ssh_words(const SshOptions& options, const SshHost& host) {
  const auto silence = std::chrono::ceil<std::chrono::seconds>(options.silence).count();
  const auto probe = std::max<std::int64_t>(1, silence / kMostSilentProbes);
  return {"sh", "-c", "exec " + options.program + " \"$@\"", "sh", "-T", "-oBatchMode=yes",
          fmt::format("-oConnectTimeout={}", kConnectSeconds),
          fmt::format("-oServerAliveInterval={}", probe),
          fmt::format("-oServerAliveCountMax={}", kMostSilentProbes),
          // Otherwise ssh says nothing about a host that no longer answers.
          "-oLogLevel=INFO", "-oControlPath=none", "-oRemoteCommand=none",
          "-oClearAllForwardings=yes", host.destination(),
          "exec " + shell_words({options.paceline, "launch", kAgentWord})};
}

std::string why_not_reached(const SshOptions& options, const SshHost& host,
                            const std::string& written, int status) {
  return fmt::format("host {} cannot be reached: {}: {}", host.name, last_line_of(written),
                     remedy(options, host, written, status));
}

std::string why_lost(const SshHost& host, const std::string& written) {
  return fmt::format(
      "the connection to host {} was lost ({}), where the tasks end when they notice", host.name,
      last_line_of(written));
}

}  // namespace paceline
