#include "tools/plot_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>

namespace paceline {
namespace {

constexpr int kWidth = 900, kPanelHeight = 240, kTitleHeight = 30;
constexpr std::size_t kKeyWidth = 9;  // of a line's sample, in characters
constexpr std::string_view kSpeed = "speed/", kPerSecond = "_per_s", kShare = "share/";
constexpr double kSeen = 5e-4;  // of the time; less is no area of the picture
// Colours that can be told apart with any colour vision (Okabe and Ito).
constexpr std::string_view kColours[] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                         "#d55e00", "#56b4e9", "#999999"};

// An activity of a picture. The table has them in the order of the reports.
struct DrawnActivity {
  std::string_view name, colour;
};
constexpr DrawnActivity kDrawnActivities[] = {
    {"input", "#e69f00"}, {"compute", "#0072b2"}, {"pull", "#56b4e9"},
    {"push", "#009e73"},  {"apply", "#cc79a7"},   {"queue", "#d55e00"},
    {"wait", "#d55e00"},  {"other", "#999999"},   {"idle", "#dddddd"}};

bool is_ps(const TaskSummaries& task) { return task.task.starts_with("ps:"); }
constexpr std::string_view kStepsPerSecond = "speed/steps_per_s";

// True when the tag is none of those of docs/summaries.md.
bool is_own(std::string_view tag) {
  constexpr std::string_view kKnown[] = {"loss",        "perplexity", "learning_rate",
                                         "global_norm", "staleness",  "speed",
                                         "share",       "use",        "variables"};
  const std::string_view family = tag.substr(0, tag.find('/'));
  return std::ranges::find(kKnown, family) == std::end(kKnown);
}

// The text as a word of gnuplot, which interprets nothing in single quotes.
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
  explicit Script(const Plot& plot)
      : title_(plot.title), smooth_(std::max<std::size_t>(1, plot.smooth)) {
    const std::vector<PlottedRun>& runs = plot.runs;
    for (const PlottedRun& run : runs) {
      const auto workers = std::ranges::count_if(run.tasks, std::not_fn(is_ps));
      for (const TaskSummaries& task : run.tasks) {
        if (is_ps(task)) continue;
        const std::string_view colour = kColours[workers_.size() % std::size(kColours)];
        workers_.push_back({workers == 1 ? run.name : run.name + " " + task.task, &task, colour});
      }
    }
    if (runs.size() != 1) return;
    for (const bool ps : {false, true}) {
      for (const TaskSummaries& task : runs.front().tasks) {
        if (is_ps(task) == ps) shown_shares_.push_back(&task);
      }
    }
  }

  void add_panels() {
    add_lines("loss", {"loss"}, "");
    add_lines("perplexity", {"perplexity", "perplexity/valid"}, "set logscale y\n");
    add_lines("staleness, updates", {"staleness"}, "set yrange [0:*]\n");
    for (const std::string& tag : own_tags()) add_lines(tag, {tag}, "");
    add_lines(speed_label(), speed_tags(), "set yrange [0:*]\n");
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
        terminal, kWidth, height, word(output), data_, longest_title_ + kKeyWidth,
        std::max<std::size_t>(1, panels_.size()), word(title_));
    for (const std::string& panel : panels_) text += panel + "unset logscale\nset yrange [*:*]\n";
    return text + "unset multiplot\nset output\n";
  }

 private:
  /// The curves of one colour.
  struct Worker {
    std::string name;
    const TaskSummaries* task;
    std::string_view colour;
  };
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

  /// Draws a curve for each of these tags that a task has; rare values are drawn as points.
  void add_lines(const std::string& label, const std::vector<std::string>& tags,
                 const std::string& settings) {
    std::vector<std::string> curves;
    for (const Worker& worker : workers_) {
      for (const std::string& tag : tags) add_curve(worker, tag, curves);
    }
    add_panel(label, settings, curves);
  }
  void add_curve(const Worker& worker, const std::string& tag, std::vector<std::string>& curves) {
    const auto points = worker.task->numbers.find(tag);
    if (points == worker.task->numbers.end()) return;
    const bool seldom = tag.ends_with("/valid");
    const std::string data = add_data(rows_of(points->second));
    const bool smoothed = smooth_ > 1 && !seldom;
    if (smoothed) {
      curves.push_back(fmt::format("{} using 1:2 with lines lw 0.5 linecolor rgb '{}' notitle",
                                   data, worker.colour));
    }
    curves.push_back(fmt::format("{} using 1:{} with {} linecolor rgb '{}' title {}", data,
                                 smoothed ? 3 : 2, seldom ? "points pt 7" : "lines lw 2",
                                 worker.colour,
                                 title(seldom ? worker.name + ", valid" : worker.name)));
  }
  // Step, value, and the mean of the last `smooth_` values.
  std::string rows_of(const std::vector<SummaryPoint>& points) const {
    std::string rows;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const std::size_t first = i + 1 - std::min(smooth_, i + 1);
      double sum = 0;
      for (std::size_t j = first; j <= i; ++j) sum += points[j].value;
      rows +=
          fmt::format("{} {} {}\n", points[i].step, points[i].value, sum / double(i + 1 - first));
    }
    return rows;
  }

  /// Returns the tags that the program named, not Paceline.
  std::vector<std::string> own_tags() const {
    std::set<std::string> tags;
    for (const Worker& worker : workers_) {
      for (const auto& [tag, points] : worker.task->numbers) {
        if (is_own(tag)) tags.insert(tag);
      }
    }
    return {tags.begin(), tags.end()};
  }

  std::vector<std::string> speed_tags() const {
    std::set<std::string> tags;
    for (const Worker& worker : workers_) {
      for (const auto& [tag, points] : worker.task->numbers) {
        if (tag.starts_with(kSpeed) && tag != kStepsPerSecond) tags.insert(tag);
      }
    }
    return {tags.begin(), tags.end()};
  }
  std::string speed_label() const {
    const std::vector<std::string> tags = speed_tags();
    if (tags.size() != 1 || !tags[0].ends_with(kPerSecond)) return "examples/s";
    const std::string& tag = tags[0];
    return tag.substr(kSpeed.size(), tag.size() - kSpeed.size() - kPerSecond.size()) + "/s";
  }

  /// Adds a panel of the activities' shares, one above the other, in percent.
  void add_shares(const TaskSummaries& task) {
    std::vector<DrawnActivity> seen;
    std::map<std::int64_t, std::vector<double>> shares;  // by step, in the order of `seen`
    for (const DrawnActivity& activity : kDrawnActivities) {
      const auto points = task.numbers.find(std::string(kShare) + std::string(activity.name));
      const auto large = [](const SummaryPoint& point) { return point.value > kSeen; };
      if (points == task.numbers.end() || std::ranges::none_of(points->second, large)) continue;
      seen.push_back(activity);
      for (const SummaryPoint& point : points->second) {
        shares[point.step].resize(seen.size());
        shares[point.step].back() = point.value;
      }
    }
    std::string rows;
    for (auto& [step, parts] : shares) {
      parts.resize(seen.size());
      double below = 0;
      rows += fmt::format("{} 0", step);
      for (const double part : parts) rows += fmt::format(" {}", below += 100 * part);
      rows += '\n';
    }
    std::vector<std::string> curves;
    if (seen.empty()) return;
    const std::string data = add_data(rows);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      curves.push_back(fmt::format("{} using 1:{}:{} with filledcurves fillcolor rgb '{}' title {}",
                                   data, i + 2, i + 3, seen[i].colour,
                                   title(std::string(seen[i].name))));
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

}  // namespace

std::string plot_script(const Plot& plot, const std::string& terminal, const std::string& output) {
  Script script(plot);
  script.add_panels();
  return script.text(terminal, output);
}

}  // namespace paceline
