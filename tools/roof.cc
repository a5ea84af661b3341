#include <fmt/format.h>

#include "base/print_text.h"
#include "base/text_file.h"
#include "cli/flags/command_line.h"
#include "predict/hosts_file.h"
#include "predict/machine_facts.h"
#include "tools/subcommand.h"

namespace paceline {
namespace {

CommandLine roof_line() {
  return {"paceline roof",
          "Prints what this machine can do: products and memory, on all cores and on one. "
          "paceline predict reads it from a file (--roof FILE), or as a host of --hosts FILE.",
          R"(Examples:
  paceline roof
  paceline roof --out node7.toml)",
          {{"--out", "FILE", "Write it to this .toml file", "Flags"}}};
}

}  // namespace

std::vector<CommandLine> roof_lines() { return {roof_line()}; }

int roof_command(const Arguments& arguments) {
  const std::optional<FlagValues> values = parse(roof_line(), arguments);
  if (!values) return 0;
  const std::string out = values->text("--out");
  if (values->given("--out")) check_new_file("--out", out);
  const SeenHost seen = host_of_moment();
  if (!seen.discarded.empty()) print_text(stderr, seen.discarded + "\n");
  const std::string text = roof_file_text(seen.host);
  if (values->given("--out")) {
    write_text_file("the roof", out, text);
  } else {
    fmt::print("{}", text);
  }
  return 0;
}

}  // namespace paceline
