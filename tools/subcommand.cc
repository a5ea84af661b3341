#include "tools/subcommand.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "paceline/error.h"

namespace paceline {
namespace {

constexpr Subcommand kSubcommands[] = {
    {"train", "Train a model in one process, or with parameter servers and workers", train_command,
     train_lines},
    {"top", "Show a run in a terminal, while it trains or after its end", top_command, top_lines},
    {"eval", "Evaluate the checkpoints of a run, while it trains or later", eval_command,
     eval_lines},
    {"infer", "Classify new images, or judge a new text, with a run's checkpoint", infer_command,
     infer_lines},
    {"server", "Run a parameter server that serves one job after the other", server_command,
     server_lines},
    {"key", "Make the key that all tasks of a job share, or show its fingerprint", key_command,
     key_lines},
    {"launch", "Start a command as each task of a job, on this machine or over ssh", launch_command,
     launch_lines},
    {"lab", "Train on emulated hosts of this machine, joined by links of a limited rate",
     lab_command, lab_lines},
    {"data", "Generate data to train on", data_command, data_lines},
    {"predict", "Predict how fast each way to distribute would be, and what limits it",
     predict_command, predict_lines},
    {"explain", "Say what held a run back, and what its cure would bring", explain_command,
     explain_lines},
    {"timeline", "Put the timelines of a run's tasks into one file, with clocks aligned",
     timeline_command, timeline_lines},
    {"probe", "Measure the network between hosts, and the hosts, for predictions", probe_command,
     probe_lines},
    {"roof", "Print what this machine can do, for predictions", roof_command, roof_lines},
    {"compare", "Compare the reports of runs", compare_command, compare_lines},
    {"bench",
     "Measure this machine, links, rules, kernels, and how near a workload gets to its bound",
     bench_command, bench_lines},
    {"inspect", "Show the content of a checkpoint, or how two differ", inspect_command,
     inspect_lines},
    {"export", "Write a trained model for PyTorch, or as ONNX", export_command, export_lines},
    {"plot", "Draw the loss, perplexity and speed of runs", plot_command, plot_lines},
    {"completion", "Print a completion script for a shell", completion_command, completion_lines},
    {"manual", "Print or write the man pages", manual_command, manual_lines},
    {"version", "Print the versions that a bug report needs", version_command, version_lines},
};

}  // namespace

std::span<const Subcommand> all_subcommands() { return kSubcommands; }

Arguments command_after(const Arguments& arguments, const std::string& example) {
  const auto separator = std::ranges::find(arguments, "--");
  if (separator == arguments.end() || separator + 1 == arguments.end()) {
    throw Error(
        ErrorCode::kUsage,
        fmt::format("the command to run is missing: it stands behind --, as in {}", example));
  }
  Arguments command(separator + 1, arguments.end());
  if (std::ranges::find(kSubcommands, command.front(), &Subcommand::name) !=
      std::end(kSubcommands)) {
    command.insert(command.begin(), std::filesystem::read_symlink("/proc/self/exe"));
  }
  return command;
}

std::string help_of_paceline() {
  std::string text =
      "Trains models with dataflow graphs on many devices and machines.\n\nUsage: paceline "
      "SUBCOMMAND …\n\n";
  for (const Subcommand& subcommand : kSubcommands) {
    text += fmt::format("  {:<12}{}\n", subcommand.name, subcommand.help);
  }
  return text + R"(
Examples:
  paceline data corpus --out text --words 1000000
  paceline train ptb --data text --steps 300
  paceline train ptb --data text --steps 300 --ps 1 --workers 2
  paceline train ptb --help
  paceline bench step mlp --ps 1 --workers 4
)";
}

}  // namespace paceline
