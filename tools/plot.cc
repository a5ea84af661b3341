#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "base/text_file.h"
#include "cli/flags/command_line.h"
#include "paceline/error.h"
#include "run/gnuplot.h"
#include "tools/plot_script.h"
#include "tools/say.h"
#include "tools/subcommand.h"

namespace paceline {
namespace {

CommandLine plot_flags() {
  return {
      "paceline plot",
      "Draws the loss, perplexity, staleness, speed and the model's own numbers of runs over the "
      "global step, from their event files; for one run also where the time of each task went. "
      "Needs "
      "gnuplot (Debian: gnuplot-nox).",
      R"(RUN is the --out folder of a run, its summaries/, or any folder with event files.

Examples:
  paceline plot out --out run.svg
  paceline plot alone cluster --out both.png)",
      {{"RUN", "DIR…", "The folder of a run; several runs are drawn together", "Plot", true},
       {"--out", "FILE", "The picture to write: FILE.svg or FILE.png", "Plot"},
       {"--title", "TEXT", "The title of the picture (default: the names of the runs)", "Plot"},
       {"--smooth", "N",
        "Draw the mean of the last N points over the points; 1: the points alone (default: a "
        "twentieth of them, from 40 on)",
        "Plot"}}};
}

}  // namespace

std::vector<CommandLine> plot_lines() { return {plot_flags()}; }

int plot_command(const Arguments& arguments) {
  const std::optional<FlagValues> values = parse(plot_flags(), arguments);
  if (!values) return 0;
  const std::string out = values->text("--out");
  terminal_for("--out", out);
  check_new_file("--out", out);
  Plot plot;
  const std::vector<std::string> runs = values->all("RUN");
  for (const std::string& run : runs) plot.runs.push_back({run, read_summaries(run)});
  plot.title =
      values->given("--title") ? values->text("--title") : fmt::format("{}", fmt::join(runs, ", "));
  plot.smooth = std::size_t(values->whole_number("--smooth", 1, INT32_MAX).value_or(0));
  write_text_file(
      "the picture", out,
      drawn_by_gnuplot(out, [&](const std::string& terminal, const std::string& picture) {
        return plot_script(plot, terminal, picture);
      }));
  if (!is_written_through(out)) say(fmt::format("{}\n", out));
  return 0;
}

}  // namespace paceline
