#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/text_file.h"
#include "cli/flags/command_line.h"
#include "dashboard/palette.h"
#include "paceline/error.h"
#include "run/gnuplot.h"
#include "run/report/activities.h"
#include "run/report/report_fields.h"
#include "summary/event_folder.h"
#include "tools/say.h"
#include "tools/subcommand.h"

namespace paceline {
namespace {

// The script that gnuplot draws from.

/// One run: its name on the command line, and what its tasks have written.
struct PlottedRun {
  std::string name;
  std::vector<TaskSummaries> tasks;
};

struct Plot {
  std::vector<PlottedRun> runs;
  std::string title;  // above all panels
  // Lines show the mean of this many points; 0: a number that suits the points.
  std::size_t smooth = 0;
};

/// Returns a script that draws panels below one another, over the global step: loss, perplexity and
/// staleness, if there are such numbers; the model's own numbers; the speed; and, for a single run,
/// what each task spent its time on. `terminal` is "svg" or "pngcairo".
std::string plot_script(const Plot& plot, const std::string& terminal, const std::string& output);

constexpr int kWidth = 900, kPanelHeight = 240, kTitleHeight = 30;
constexpr std::size_t kKeyWidth = 9, kNoKey = 3;  // of a line's sample, in characters
constexpr std::string_view kSpeed = "speed/", kPerSecond = "_per_s", kShare = "share/";
constexpr double kSeen = 5e-4;       // a smaller share of the time would not be visible
constexpr std::size_t kSeldom = 10;  // a curve with fewer points than this also shows the points
// A curve of at least kSmoothed points is smoothed over a window of 1 / kPartOfAll of its points.
constexpr std::size_t kSmoothed = 40, kPartOfAll = 20;

bool is_ps(const TaskSummaries& task) { return task.task.starts_with("ps:"); }
constexpr std::string_view kStepsPerSecond = "speed/steps_per_s";

// For the tag "loss/valid", family_of returns "loss", and member_of "valid".
std::string family_of(std::string_view tag) { return std::string(tag.substr(0, tag.find('/'))); }
std::string member_of(std::string_view tag) {
  const std::size_t slash = tag.find('/');
  return slash == tag.npos ? "" : std::string(tag.substr(slash + 1));
}

// True for tags that need no panel of their own: those of a report's fields, and others that
// docs/summaries.md lists. The program's own numbers may belong to the families of the loss and the
// perplexity.
bool is_known(std::string_view tag) {
  constexpr std::string_view kOthers[] = {"learning_rate", "global_norm", "variables"};
  const std::string family = family_of(tag);
  return std::ranges::find(kOthers, family) != std::end(kOthers) ||
         std::ranges::any_of(report_fields<TaskReport>(), [&](const auto& field) {
           return !field.tag.empty() && family_of(field.tag) == family;
         });
}

// Returns names that distinguish the runs: their paths, without the folders that contain all of
// them.
std::vector<std::string> short_names(const std::vector<PlottedRun>& runs) {
  if (runs.size() == 1) return {""};
  std::vector<std::string> names;
  names.reserve(runs.size());
  for (const PlottedRun& run : runs) names.push_back(run.name);
  const auto begin_of = [](const std::string& name) {
    const std::size_t slash = name.find('/');
    return slash == name.npos ? std::string() : name.substr(0, slash + 1);
  };
  while (!names.empty() && !begin_of(names[0]).empty() &&
         std::ranges::all_of(names, [&](const std::string& name) {
           return begin_of(name) == begin_of(names[0]) && name.size() > begin_of(name).size();
         })) {
    const std::size_t common = begin_of(names[0]).size();
    for (std::string& name : names) name.erase(0, common);
  }
  return names;
}

// Returns the largest distance in steps between two points that a curve still joins. Between points
// that are farther apart, the curve has a gap.
std::int64_t widest_step(const std::vector<SummaryPoint>& points) {
  constexpr std::int64_t kTimes = 4;
  std::vector<std::int64_t> steps;
  for (std::size_t i = 1; i < points.size(); ++i) {
    steps.push_back(points[i].step - points[i - 1].step);
  }
  if (steps.size() < 2) return INT64_MAX;
  const auto middle = steps.begin() + std::ptrdiff_t(steps.size() / 2);
  std::ranges::nth_element(steps, middle);
  return std::max<std::int64_t>(1, *middle) * kTimes;
}

// Returns the text in single quotes, in which gnuplot interprets nothing.
std::string word(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') quoted += '\'';
    quoted += c == '\n' ? ' ' : c;
  }
  return quoted + "'";
}

/// Panels, and the data that they draw.
class Script {
 public:
  explicit Script(const Plot& plot) : title_(plot.title), smooth_(plot.smooth) {
    const std::vector<std::string> names = short_names(plot.runs);
    for (std::size_t i = 0; i < plot.runs.size(); ++i) add_workers(plot.runs[i], names[i]);
    if (plot.runs.size() != 1) return;
    for (const bool ps : {false, true}) {
      for (const TaskSummaries& task : plot.runs.front().tasks) {
        if (is_ps(task) == ps) shown_shares_.push_back(&task);
      }
    }
  }

  void add_panels() {
    add_lines("loss", tags_of("loss"), "");
    add_lines("perplexity", tags_of("perplexity"), "set logscale y\n");
    for (const ReportField<TaskReport>& field : report_fields<TaskReport>()) add_field(field);
    for (const std::string& family : own_families()) add_lines(family, tags_of(family), "");
    add_lines(speed_label(), speed_tags(), "set yrange [0:*]\n", false);
    for (const TaskSummaries* task : shown_shares_) add_shares(*task);
  }
  std::string text(const std::string& terminal, const std::string& output) const {
    const int height = kTitleHeight + kPanelHeight * std::max<int>(1, int(panels_.size()));
    std::string text = fmt::format(
        "set terminal {} noenhanced size {},{} background rgb 'white'\nset output {}\n{}"
        "set border 3 linecolor rgb '#666666'\nset tics nomirror\n"
        "set grid linetype 1 linewidth 0.5 linecolor rgb '#dddddd'\nset xlabel 'global step'\n"
        "set key at graph 1.02, graph 1 left top Left reverse\nset lmargin 11\n"
        "set rmargin {}\nset multiplot layout {},1 title {}\n",
        terminal, kWidth, height, word(output), data_,
        longest_title_ == 0 ? kNoKey : longest_title_ + kKeyWidth,
        std::max<std::size_t>(1, panels_.size()), word(title_));
    for (const std::string& panel : panels_)
      text += panel + "unset logscale\nunset label\nset xrange [*:*]\nset yrange [*:*]\n";
    return text + "unset multiplot\nset output\n";
  }

 private:
  struct Worker {
    std::string name;  // empty: there is no other
    const TaskSummaries* task;
  };
  void add_workers(const PlottedRun& run, const std::string& name) {
    const auto workers = std::ranges::count_if(run.tasks, std::not_fn(is_ps));
    for (const TaskSummaries& task : run.tasks) {
      if (is_ps(task)) continue;
      const std::string of_task = workers == 1 ? "" : task.task;
      const bool both = !name.empty() && !of_task.empty();
      workers_.push_back({fmt::format("{}{}{}", name, both ? " " : "", of_task), &task});
    }
  }
  std::string title(const std::string& text) {
    longest_title_ = std::max(longest_title_, text.size());
    return word(text);
  }
  // Returns the name of the data.
  std::string add_data(const std::string& rows) {
    std::string name = fmt::format("$data{}", count_++);
    data_ += fmt::format("{} << END\n{}END\n", name, rows);
    return name;
  }
  void add_panel(const std::string& label, const std::string& settings,
                 const std::vector<std::string>& curves) {
    if (curves.empty()) return;
    panels_.push_back(fmt::format("{}set ylabel {}\nplot {}\n", settings, word(label),
                                  fmt::join(curves, ", \\\n  ")));
  }

  /// Draws a curve for each of these tags that a task has. If `named`, a curve's name includes the
  /// part of the tag behind the slash.
  void add_lines(const std::string& label, const std::vector<std::string>& tags,
                 const std::string& settings, bool named = true) {
    std::vector<std::string> curves;
    std::size_t number = 0;
    bool finite = false;
    for (const std::string& tag : tags) {
      for (const Worker& worker : workers_) {
        const auto points = worker.task->numbers.find(tag);
        if (points == worker.task->numbers.end() || points->second.empty()) continue;
        const std::string member = named ? member_of(tag) : "";
        const bool both = !member.empty() && !worker.name.empty();
        add_curve(worker.name + (both ? ", " : "") + member, points->second, number++, curves);
        finite = finite || has_finite(points->second);
      }
    }
    if (finite || curves.empty()) return add_panel(label, settings, curves);
    // gnuplot finds no range if no value is finite.
    add_panel(label,
              "set xrange [0:1]\nset yrange [0:1]\nset label 1 'no value is finite' at graph 0.5, "
              "graph 0.5 center\n",
              {"NaN notitle"});
  }
  // A field gets its own panel if its tag belongs to no family.
  void add_field(const ReportField<TaskReport>& field) {
    if (field.tag.empty() || field.tag.find('/') != field.tag.npos) return;
    add_lines(fmt::format("{}, {}", field.tag, field.unit), {std::string(field.tag)},
              "set yrange [0:*]\n");
  }
  static bool has_finite(const std::vector<SummaryPoint>& points) {
    return std::ranges::any_of(
        points, [](const SummaryPoint& point) { return std::isfinite(point.value); });
  }
  void add_curve(const std::string& name, const std::vector<SummaryPoint>& points,
                 std::size_t number, std::vector<std::string>& curves) {
    const std::string colour = colour_of_curve(number);
    const std::size_t window = window_of(points);
    const std::string data = add_data(rows_of(points, window));
    if (window > 1) {
      curves.push_back(fmt::format("{} using 1:2 with lines lw 1 linecolor rgb '#90{}' notitle",
                                   data, colour.substr(1)));
    }
    const bool seldom = points.size() < kSeldom;
    curves.push_back(fmt::format("{} using 1:3 with {} linecolor rgb '{}' {}", data,
                                 seldom ? "linespoints lw 2 pt 7 ps 0.5" : "lines lw 2", colour,
                                 name.empty() ? "notitle" : "title " + title(name)));
  }
  // gnuplot leaves a gap at nan, and does not know infinity.
  static std::string number_of(double value) {
    return std::isfinite(value) ? fmt::format("{}", value) : "nan";
  }
  std::size_t window_of(const std::vector<SummaryPoint>& points) const {
    if (smooth_ > 0) return smooth_;
    return points.size() < kSmoothed ? 1 : points.size() / kPartOfAll;
  }
  // Returns rows with a step, its value, and the mean of the values in the window that ends there.
  static std::string rows_of(const std::vector<SummaryPoint>& points, std::size_t window) {
    const std::int64_t widest = widest_step(points);
    std::string rows;
    std::size_t begin = 0;  // of what is drawn in one piece
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (i > 0 && points[i].step - points[i - 1].step > widest) {
        rows += "\n";
        begin = i;
      }
      const std::size_t first = std::max(begin, i + 1 - std::min(window, i + 1));
      double sum = 0;
      for (std::size_t j = first; j <= i; ++j) sum += points[j].value;
      rows += fmt::format("{} {} {}\n", points[i].step, number_of(points[i].value),
                          number_of(sum / double(i + 1 - first)));
    }
    return rows;
  }

  std::set<std::string> all_tags() const {
    std::set<std::string> tags;
    for (const Worker& worker : workers_) {
      for (const auto& [tag, points] : worker.task->numbers) tags.insert(tag);
    }
    return tags;
  }
  std::vector<std::string> tags_of(const std::string& family) const {
    std::vector<std::string> tags;
    for (const std::string& tag : all_tags()) {
      if (family_of(tag) == family) tags.push_back(tag);
    }
    return tags;
  }
  /// Returns the families of numbers that the program itself has named.
  std::set<std::string> own_families() const {
    std::set<std::string> families;
    for (const std::string& tag : all_tags()) {
      const std::string family = family_of(tag);
      if (!is_known(tag) && family != "loss" && family != "perplexity") families.insert(family);
    }
    return families;
  }

  std::vector<std::string> speed_tags() const {
    std::vector<std::string> tags = tags_of("speed");
    std::erase(tags, kStepsPerSecond);
    return tags;
  }
  std::string speed_label() const {
    const std::vector<std::string> tags = speed_tags();
    if (tags.size() != 1 || !tags[0].ends_with(kPerSecond)) return "examples/s";
    const std::string& tag = tags[0];
    return tag.substr(kSpeed.size(), tag.size() - kSpeed.size() - kPerSecond.size()) + "/s";
  }

  /// Adds a panel with the shares of the activities, stacked, in percent.
  void add_shares(const TaskSummaries& task) {
    std::vector<std::string_view> seen;
    std::map<std::int64_t, std::vector<double>> shares;  // by step, in the order of `seen`
    for (const ActivityWords& activity : kActivityWords) {
      const auto points = task.numbers.find(fmt::format("{}{}", kShare, activity.name));
      const auto large = [](const SummaryPoint& point) { return point.value > kSeen; };
      if (points == task.numbers.end() || std::ranges::none_of(points->second, large)) continue;
      seen.push_back(activity.name);
      for (const SummaryPoint& point : points->second) {
        shares[point.step].resize(seen.size());
        shares[point.step].back() = point.value;
      }
    }
    std::vector<SummaryPoint> steps;
    steps.reserve(shares.size());
    for (const auto& [step, parts] : shares) steps.push_back({.step = step});
    const std::int64_t widest = widest_step(steps);
    std::string rows;
    std::int64_t last = shares.empty() ? 0 : shares.begin()->first;
    for (auto& [step, parts] : shares) {
      parts.resize(seen.size());
      double below = 0;
      if (step - last > widest) rows += "\n";
      last = step;
      rows += fmt::format("{} 0", step);
      for (const double part : parts) rows += fmt::format(" {}", below += 100 * part);
      rows += '\n';
    }
    std::vector<std::string> curves;
    if (seen.empty()) return;
    const std::string data = add_data(rows);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      curves.push_back(fmt::format("{} using 1:{}:{} with filledcurves fillcolor rgb '{}' title {}",
                                   data, i + 2, i + 3, colour_of(seen[i]),
                                   title(std::string(seen[i]))));
    }
    add_panel("time, % (" + task.task + ")", "set yrange [0:100]\n", curves);
  }

  const std::string title_;
  const std::size_t smooth_;
  std::vector<Worker> workers_;
  std::vector<const TaskSummaries*> shown_shares_;  // of one run
  std::string data_;
  int count_ = 0;
  std::size_t longest_title_ = 0;
  std::vector<std::string> panels_;
};

std::string plot_script(const Plot& plot, const std::string& terminal, const std::string& output) {
  Script script(plot);
  script.add_panels();
  return script.text(terminal, output);
}

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
