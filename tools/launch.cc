#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "cli/flags/cluster_reader.h"
#include "cli/flags/flag_checks.h"
#include "cli/flags/flags.h"
#include "cli/flags/lab_reader.h"
#include "cli/flags/launch_environment.h"
#include "cli/flags/run_options_reader.h"
#include "cli/task_program.h"
#include "launch/ssh/host_agent.h"
#include "launch/ssh/ssh_options.h"
#include "paceline/error.h"
#include "predict/hosts_file.h"
#include "run/program_run.h"
#include "tools/subcommand.h"

namespace paceline {
namespace {

/// The flags of a training program that its launcher reads.
constexpr const char* kLaunchersFlags[] = {
    "--ps",        "--workers",  "--on-failure",   "--tls",       "--key-file",
    "--tls-cert",  "--tls-key",  "--tls-ca",       "--insecure",  "--lab-hosts",
    "--lab-place", "--lab-gbps", "--lab-delay-ms", "--alone",     "--report",
    "--timeline",  "--quiet",    "--log-level",    "--log-format"};

/// Returns those of the given flags that training programs have, too. Leaves out --hosts, which has
/// another meaning there.
FlagValues of_training(const FlagValues& values) {
  FlagValues own;
  for (const char* const flag : kLaunchersFlags) {
    for (const std::string& value : values.all(flag)) own.add(flag, value);
  }
  return own;
}

/// Returns the flags that make tasks encrypt as their launcher does. They get the key through a
/// pipe.
std::vector<std::string> flags_of_tasks(const FlagValues& values) {
  std::vector<std::string> flags;
  for (const char* const flag : {"--tls", "--tls-cert", "--tls-key", "--tls-ca"}) {
    if (values.given(flag)) flags.insert(flags.end(), {flag, values.text(flag)});
  }
  if (values.given("--insecure")) flags.emplace_back("--insecure");
  return flags;
}

// True for the path of a file of hosts. A list of hosts contains no slash, and no host's name ends
// in ".toml".
bool is_file_of_hosts(const std::string& text) {
  return text.ends_with(".toml") || text.find('/') != std::string::npos;
}

std::vector<SshHost> hosts_of_file(const std::string& path) {
  std::vector<SshHost> hosts;
  for (const PredictedHost& host : read_hosts(path).hosts) {
    if (host.name.find(' ') != std::string::npos) {
      refuse_flag("--hosts", path,
                  fmt::format("'{}' is no name by which ssh reaches a host: each needs a [[host]] "
                              "with its name, and no count",
                              host.name));
    }
    if (host.devices > 0) hosts.push_back({.name = host.name, .room = host.devices});
  }
  read_flag("--hosts", [&] { check_ssh_hosts(hosts); });
  return hosts;
}

/// Returns NAME=VALUE for a text of --env. If the text is only a NAME, the value is that of this
/// process.
std::string variable_of(const std::string& text) {
  const std::string name = text.substr(0, text.find('='));
  if (name.empty()) refuse_flag("--env", text, "must be NAME or NAME=VALUE");
  if (name.size() < text.size()) return text;
  const char* const value = own_environment(name.c_str());
  if (value == nullptr)
    refuse_flag("--env", text, fmt::format("is not set here: --env {}=VALUE says a value", name));
  return name + "=" + value;
}

std::vector<Flag> ssh_flags() {
  const std::string group = "Other hosts";
  return {
      {"--hosts", "LIST|FILE",
       "Start the tasks on these hosts over ssh: a list such as a,user@b:4, where 4 is the number "
       "of "
       "workers that fit, or a .toml file, as paceline predict --hosts reads it. Each task gets a "
       "host of its own where there are enough, the parameter servers first; else both go round "
       "the "
       "hosts",
       group},
      {"--cwd", "PATH", "The working folder on each host (default: the path of this one)", group},
      {"--env", "NAME[=VALUE]",
       "Give the tasks this variable, with its value here, or another one; no other variable "
       "travels. May be repeated",
       group, true},
      {"--ssh", "TEXT",
       "The words of the shell that run ssh, such as 'ssh -p 2222 -i key' (default ssh)", group},
      {"--first-port", "PORT",
       "The tasks of a host listen at this port and those after it (default: the host's system "
       "chooses)",
       group},
      {"--host-timeout", "S",
       "A host that nothing is heard of for so long is given up, and the tasks of one that hears "
       "nothing of the launcher end (default 30, at least 3)",
       group},
  };
}

SshOptions read_ssh(const FlagValues& values, const Cluster& cluster) {
  SshOptions ssh;
  if (!values.given("--hosts")) {
    for (const Flag& flag : ssh_flags())
      check_together(values, flag.name, "--hosts", "the hosts that ssh reaches");
    return ssh;
  }
  const std::string hosts = values.text("--hosts");
  ssh.hosts = is_file_of_hosts(hosts)
                  ? hosts_of_file(hosts)
                  : read_flag("--hosts", [&] { return parse_ssh_hosts(hosts); });
  ssh.placement = read_flag("--hosts", [&] {
    return place_on_hosts(ssh.hosts, cluster.launch.ps, cluster.launch.workers);
  });
  if (values.given("--ssh")) ssh.program = values.text("--ssh");
  ssh.paceline = std::filesystem::read_symlink("/proc/self/exe");
  ssh.folder =
      values.given("--cwd") ? values.text("--cwd") : std::filesystem::current_path().string();
  for (const std::string& variable : values.all("--env"))
    ssh.environment.push_back(variable_of(variable));
  ssh.first_port = int(values.whole_number("--first-port", 1, 65'000).value_or(0));
  if (const auto seconds = values.whole_number("--host-timeout", 3, 86'400))
    ssh.silence = std::chrono::seconds(*seconds);
  return ssh;
}

CommandLine launch_line() {
  CommandLine line;
  line.name = "paceline launch";
  line.about =
      "Starts a command once for each task of a job, parameter servers and workers, on this "
      "machine "
      "or on other hosts (--hosts). $PACELINE_TASK says to each which task it is, and "
      "$PACELINE_KEY_FILE names a pipe "
      "with the job's key, so that the command may be any, within which one program that uses "
      "run_program (or paceline train) is started. Their lines are passed on with the task's name "
      "before them; Ctrl-C ends all, and when one fails the others are ended (--on-failure). What "
      "else the training needs are flags of the command. Other hosts are reached over ssh, which "
      "must "
      "ask nothing; they have this paceline and the command at the same paths, and each of them "
      "reaches the others by the names of --hosts. The job's key reaches the tasks by ssh, and no "
      "file or command line has it.";
  line.examples = R"(Examples:
  paceline launch --ps 1 --workers 4 -- train mlp --steps 1000
  paceline launch --ps 1 --workers 2 -- numactl --interleave=all ./my_program --steps 1000
  paceline launch --ps 0 --workers 2 -- sh -c '. ./settings; exec ./my_program --strategy allreduce'
  paceline launch --hosts a,b,c --ps 1 --workers 2 -- train mlp --steps 1000
  paceline launch --hosts a,b --env DATA --cwd /work --ps 1 --workers 4 -- ./my_program

Exit status: 0 if all tasks ended well, 1 if one failed, 2 if used wrongly, 130 after Ctrl-C.)";
  for (const auto& flags : {cluster_flags(), run_flags()}) {
    for (const Flag& flag : flags) {
      if (std::ranges::find(kLaunchersFlags, flag.name) != std::end(kLaunchersFlags))
        line.flags.push_back(flag);
    }
  }
  const std::vector<Flag> more = ssh_flags();
  line.flags.insert(line.flags.end(), more.begin(), more.end());
  return line;
}

}  // namespace

std::vector<CommandLine> launch_lines() { return {launch_line()}; }

int launch_command(const Arguments& arguments) {
  if (arguments == Arguments{kAgentWord}) return run_agent();
  const auto values = parse(launch_line(), {arguments.begin(), std::ranges::find(arguments, "--")});
  if (!values) return 0;
  Program program{
      read_cluster(*values), read_run_options(of_training(*values)), {}, "", arguments, nullptr};
  program.command =
      command_after(arguments, "paceline launch --ps 1 --workers 2 -- train mlp --steps 1000");
  if (program.cluster.process != Cluster::Process::kLauncher)
    throw Error(ErrorCode::kUsage, "--ps M and --workers N are missing: the tasks to start");
  check_one_of_several(*values, own_environment);
  program.command_flags = flags_of_tasks(*values);
  program.lab = read_lab(*values, program.cluster);
  program.ssh = read_ssh(*values, program.cluster);
  own_program_run(program.run).flags = values->listed();
  return run_process(program);
}

}  // namespace paceline
