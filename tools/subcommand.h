// The subcommands of `paceline`. Each has one file, and one line in subcommand.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags/command_line.h"

namespace paceline {

/// The arguments after the subcommand's name.
using Arguments = std::vector<std::string>;

struct Subcommand {
  std::string_view name, help;
  /// Returns the exit status. Throws Error.
  int (*run)(const Arguments&);
  /// Returns the command lines: one, or one for each word that may follow the name.
  std::vector<CommandLine> (*lines)();
};
std::span<const Subcommand> all_subcommands();
/// Returns the command after "--" in the arguments of a subcommand that starts it. If the command
/// is a subcommand of this program, the program's name may be left out. Throws kUsage, with the
/// example, if there is no command.
Arguments command_after(const Arguments& arguments, const std::string& example);
/// The text of `paceline --help`.
std::string help_of_paceline();

int bench_command(const Arguments& arguments);
int compare_command(const Arguments& arguments);
int completion_command(const Arguments& arguments);
int data_command(const Arguments& arguments);
int eval_command(const Arguments& arguments);
int export_command(const Arguments& arguments);
int explain_command(const Arguments& arguments);
int timeline_command(const Arguments& arguments);
int infer_command(const Arguments& arguments);
int inspect_command(const Arguments& arguments);
int key_command(const Arguments& arguments);
int launch_command(const Arguments& arguments);
int lab_command(const Arguments& arguments);
int manual_command(const Arguments& arguments);
int plot_command(const Arguments& arguments);
int top_command(const Arguments& arguments);
int predict_command(const Arguments& arguments);
int probe_command(const Arguments& arguments);
int roof_command(const Arguments& arguments);
int server_command(const Arguments& arguments);
int train_command(const Arguments& arguments);
int version_command(const Arguments& arguments);

std::vector<CommandLine> bench_lines();
std::vector<CommandLine> compare_lines();
std::vector<CommandLine> completion_lines();
std::vector<CommandLine> data_lines();
std::vector<CommandLine> eval_lines();
std::vector<CommandLine> export_lines();
std::vector<CommandLine> explain_lines();
std::vector<CommandLine> timeline_lines();
std::vector<CommandLine> infer_lines();
std::vector<CommandLine> inspect_lines();
std::vector<CommandLine> key_lines();
std::vector<CommandLine> launch_lines();
std::vector<CommandLine> lab_lines();
std::vector<CommandLine> manual_lines();
std::vector<CommandLine> plot_lines();
std::vector<CommandLine> top_lines();
std::vector<CommandLine> predict_lines();
std::vector<CommandLine> probe_lines();
std::vector<CommandLine> roof_lines();
std::vector<CommandLine> server_lines();
std::vector<CommandLine> train_lines();
std::vector<CommandLine> version_lines();

}  // namespace paceline
