#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string_view>

#include "base/nearest.h"
#include "cluster/program.h"
#include "paceline/error.h"
#include "tools/subcommand.h"

namespace paceline {
namespace {

struct Subcommand {
  std::string_view name, help;
  int (*run)(const Arguments&);
};

constexpr Subcommand kSubcommands[] = {
    {"train", "Train a model: in one process, or with parameter servers and workers",
     train_command},
    {"data", "Make data to train on", data_command},
    {"compare", "Put the reports of two runs side by side", compare_command},
    {"bench",
     "Measure this machine, the links, rules and kernels, and any workload beside its bound",
     bench_command},
    {"inspect", "Show what a checkpoint holds, or how two differ", inspect_command},
    {"version", "Print what a bug report needs", version_command},
};

std::string help() {
  std::string text =
      "Trains models with dataflow graphs on many devices and machines.\n\nUsage: paceline "
      "SUBCOMMAND …\n\n";
  for (const Subcommand& subcommand : kSubcommands) {
    text += fmt::format("  {:<10}{}\n", subcommand.name, subcommand.help);
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

int run(const Arguments& arguments) {
  if (arguments.empty()) throw Error(ErrorCode::kUsage, "which subcommand?\n\n" + help());
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h" || name == "help") {
    fmt::print("{}", help());
    return 0;
  }
  const auto known =
      std::ranges::find(kSubcommands, name == "--version" ? "version" : name, &Subcommand::name);
  if (known != std::end(kSubcommands)) return known->run({arguments.begin() + 1, arguments.end()});
  std::vector<std::string_view> names;
  for (const Subcommand& subcommand : kSubcommands) names.push_back(subcommand.name);
  throw Error(ErrorCode::kUsage, fmt::format("unknown subcommand '{}'{} ({})", name,
                                             did_you_mean(name, names), fmt::join(names, ", ")));
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  // Lines of a task must reach the launcher when they are written, not when a buffer is full.
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  return paceline::report_errors([&] { return paceline::run({argv + 1, argv + argc}); });
}
