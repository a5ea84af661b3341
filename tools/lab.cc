#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "paceline/error.h"
#include "tools/subcommand.h"

namespace paceline {
namespace {

constexpr std::pair<const char*, const char*> kFlagsOfCommand[] = {
    {"--hosts", "--lab-hosts"},
    {"--place", "--lab-place"},
    {"--gbps", "--lab-gbps"},
    {"--delay-ms", "--lab-delay-ms"}};

CommandLine lab_line() {
  CommandLine line;
  line.name = "paceline lab";
  line.about =
      "Runs a training on emulated hosts of this machine, joined by a switch over links of a "
      "limited "
      "rate: to try a cluster before it is there. Each host is a network namespace, so it needs "
      "root and iproute2; processors and memory are those of this machine. With --device sim the "
      "devices only take their time. It is the same as the flags --lab-hosts, --lab-place, "
      "--lab-gbps and --lab-delay-ms of the command, which may be any program that uses "
      "run_program. With --ps and --workers here it may be any command within which such a program "
      "is started, as for paceline launch.";
  line.examples = R"(Examples:
  paceline lab --hosts 4 --gbps 1 -- train resnet --ps 1 --workers 8 --device sim --sim-step-ms 333
  paceline lab --place ps+2/2/2/2 -- train resnet --ps 1 --workers 8 --steps 100
  paceline lab --hosts 3 --gbps 0.1 -- ./my_program --ps 1 --workers 2
  paceline lab --hosts 3 --ps 1 --workers 2 -- sh -c '. ./settings; exec ./my_program')";
  line.flags = {
      {"--hosts", "N", "The number of hosts; each task gets one of its own where there are enough",
       "Hosts"},
      {"--place", "SHAPE",
       "The tasks of each host: 'ps+2/2/2' is a parameter server and 2 workers on the first host, "
       "2 "
       "workers on each of two others",
       "Hosts"},
      {"--ps", "M", "Parameter servers to start of any command", "Tasks"},
      {"--workers", "N", "Workers to start of any command", "Tasks"},
      {"--gbps", "R", "The rate of each host's link in Gbit/s, each way (default 1)", "Hosts"},
      {"--delay-ms", "MS", "The delay of each packet that leaves a host (default 0)", "Hosts"},
  };
  return line;
}

// Returns the command with the lab's flags. If --ps or --workers is given, returns `paceline
// launch` with all these flags and the command.
Arguments with_flags(Arguments command, const FlagValues& values) {
  Arguments flags;
  for (const auto& [own, of_command] : kFlagsOfCommand) {
    if (values.given(own)) flags.insert(flags.end(), {of_command, values.text(own)});
  }
  if (!values.given("--ps") && !values.given("--workers")) {
    command.insert(command.end(), flags.begin(), flags.end());
    return command;
  }
  Arguments launch = {std::filesystem::read_symlink("/proc/self/exe"), "launch"};
  for (const char* const flag : {"--ps", "--workers"}) {
    if (values.given(flag)) launch.insert(launch.end(), {flag, values.text(flag)});
  }
  launch.insert(launch.end(), flags.begin(), flags.end());
  launch.emplace_back("--");
  launch.insert(launch.end(), command.begin(), command.end());
  return launch;
}

[[noreturn]] void become(Arguments command) {
  std::vector<char*> pointers;
  for (std::string& word : command) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(pointers.front(), pointers.data());
  throw Error(ErrorCode::kUsage,
              fmt::format("{} cannot be run: {}", command.front(), std::strerror(errno)));
}

}  // namespace

std::vector<CommandLine> lab_lines() { return {lab_line()}; }

int lab_command(const Arguments& arguments) {
  const auto values = parse(lab_line(), {arguments.begin(), std::ranges::find(arguments, "--")});
  if (!values) return 0;
  const Arguments command =
      command_after(arguments, "paceline lab --hosts N -- train MODEL --ps M --workers N ...");
  if (!values->given("--hosts") && !values->given("--place")) {
    throw Error(ErrorCode::kUsage, "--hosts N is missing: the number of emulated hosts");
  }
  become(with_flags(command, *values));
}

}  // namespace paceline
