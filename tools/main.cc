#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/nearest.h"
#include "cli/task_program.h"
#include "paceline/error.h"
#include "run/standard_streams.h"
#include "tools/subcommand.h"

namespace paceline {
namespace {

int run(const Arguments& arguments) {
  if (arguments.empty())
    throw Error(ErrorCode::kUsage, "the subcommand is missing\n\n" + help_of_paceline());
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h" || name == "help") {
    fmt::print("{}", help_of_paceline());
    return 0;
  }
  const std::span<const Subcommand> all = all_subcommands();
  const auto known =
      std::ranges::find(all, name == "--version" ? "version" : name, &Subcommand::name);
  if (known != all.end()) return known->run({arguments.begin() + 1, arguments.end()});
  std::vector<std::string_view> names;
  for (const Subcommand& subcommand : all) names.push_back(subcommand.name);
  throw Error(ErrorCode::kUsage, fmt::format("unknown subcommand '{}'{} ({})", name,
                                             did_you_mean(name, names), fmt::join(names, ", ")));
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  paceline::prepare_standard_streams();
  return paceline::report_errors([&] { return paceline::run({argv + 1, argv + argc}); });
}
