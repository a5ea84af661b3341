#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cli/flags/cluster_reader.h"
#include "cli/flags/flags.h"
#include "cli/flags/lab_reader.h"
#include "cli/flags/launch_environment.h"
#include "cli/flags/run_options_reader.h"
#include "cli/task_program.h"
#include "paceline/error.h"
#include "tools/subcommand.h"

namespace paceline {
namespace {

/// The flags of a training program that its launcher reads.
constexpr const char* kLaunchersFlags[] = {
    "--ps",        "--workers",  "--on-failure",   "--tls",       "--key-file",
    "--tls-cert",  "--tls-key",  "--tls-ca",       "--insecure",  "--lab-hosts",
    "--lab-place", "--lab-gbps", "--lab-delay-ms", "--alone",     "--report",
    "--timeline",  "--quiet",    "--log-level",    "--log-format"};

/// The tasks encrypt as their launcher does. The key comes through a pipe.
std::vector<std::string> flags_of_tasks(const FlagValues& values) {
  std::vector<std::string> flags;
  for (const char* const flag : {"--tls", "--tls-cert", "--tls-key", "--tls-ca"}) {
    if (values.given(flag)) flags.insert(flags.end(), {flag, values.text(flag)});
  }
  if (values.given("--insecure")) flags.emplace_back("--insecure");
  return flags;
}

CommandLine launch_line() {
  CommandLine line;
  line.name = "paceline launch";
  line.about =
      "Starts a command on this machine once for each task of a job: parameter servers and "
      "workers. $PACELINE_TASK says to each which task it is, and $PACELINE_KEY_FILE names a pipe "
      "with the job's key, so that the command may be any, within which one program that uses "
      "run_program (or paceline train) is started. Their lines are passed on with the task's name "
      "before them; Ctrl-C ends all, and when one fails the others are ended (--on-failure). What "
      "else the training needs are flags of the command.";
  line.examples = R"(Examples:
  paceline launch --ps 1 --workers 4 -- train mlp --steps 1000
  paceline launch --ps 1 --workers 2 -- numactl --interleave=all ./my_program --steps 1000
  paceline launch --ps 0 --workers 2 -- sh -c '. ./settings; exec ./my_program --strategy allreduce'

Exit status: 0 if all tasks ended well, 1 if one failed, 2 if used wrongly, 130 after Ctrl-C.)";
  for (const auto& flags : {cluster_flags(), run_flags()}) {
    for (const Flag& flag : flags) {
      if (std::ranges::find(kLaunchersFlags, flag.name) != std::end(kLaunchersFlags))
        line.flags.push_back(flag);
    }
  }
  return line;
}

}  // namespace

std::vector<CommandLine> launch_lines() { return {launch_line()}; }

int launch_command(const Arguments& arguments) {
  const auto values = parse(launch_line(), {arguments.begin(), std::ranges::find(arguments, "--")});
  if (!values) return 0;
  Program program{read_cluster(*values), read_run_options(*values), {}, "", arguments, nullptr};
  program.command =
      command_after(arguments, "paceline launch --ps 1 --workers 2 -- train mlp --steps 1000");
  if (program.cluster.role != Cluster::Role::kLauncher)
    throw Error(ErrorCode::kUsage, "--ps M and --workers N are missing: the tasks to start");
  check_one_of_several(*values, own_environment);
  program.command_flags = flags_of_tasks(*values);
  program.lab = read_lab(*values, program.cluster);
  program.run.flags = values->listed();
  return run_role(program);
}

}  // namespace paceline
