#include "tools/plot_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace paceline {
namespace {

constexpr int kWidth = 900, kPanelHeight = 240;
constexpr std::size_t kKeyWidth = 9;  // of a line's sample, in characters
constexpr std::string_view kSpeed = "speed/", kPerSecond = "_per_s", kShare = "share/";
constexpr double kSeen = 5e-4;  // of the time; less is no area of the picture
constexpr std::string_view kStepsPerSecond = "speed/steps_per_s";

// As gnuplot takes a word: it reads nothing else in single quotes.
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
  explicit Script(const std::vector<PlottedRun>& runs) : runs_(runs) {}

  void add_panels() {
    add_lines("loss", {"loss"}, "");
    add_lines("perplexity", {"perplexity", "perplexity/valid"}, "set logscale y\n");
    add_lines(speed_label(), speed_tags(), "set yrange [0:*]\n");
    if (runs_.size() == 1) add_shares(runs_[0].tasks[0]);
  }
  std::string text(const std::string& terminal, const std::string& output) const {
    const int height = kPanelHeight * std::max<int>(1, int(panels_.size()));
    std::string text = fmt::format(
        "set terminal {} noenhanced size {},{} background rgb 'white'\nset output {}\n{}"
        "set grid\nset xlabel 'global step'\nset key outside right top\nset lmargin 11\n"
        "set rmargin {}\nset multiplot layout {},1\n",
        terminal, kWidth, height, word(output), data_, longest_title_ + kKeyWidth,
        std::max<std::size_t>(1, panels_.size()));
    for (const std::string& panel : panels_) text += panel + "unset logscale\nset yrange [*:*]\n";
    return text + "unset multiplot\nset output\n";
  }

 private:
  std::string name_of(const PlottedRun& run, const TaskSummaries& task) const {
    return run.tasks.size() == 1 ? run.name : run.name + " " + task.task;
  }
  std::string title(const std::string& text) {
    longest_title_ = std::max(longest_title_, text.size());
    return word(text);
  }
  // Returns the name of the data.
  std::string add_data(const std::string& rows) {
    const std::string name = fmt::format("$data{}", count_++);
    data_ += fmt::format("{} << END\n{}END\n", name, rows);
    return name;
  }
  void add_panel(const std::string& label, const std::string& settings,
                 const std::vector<std::string>& curves) {
    if (curves.empty()) return;
    panels_.push_back(fmt::format("{}set ylabel {}\nplot {}\n", settings, word(label),
                                  fmt::join(curves, ", \\\n  ")));
  }

  /// A curve of each of these tags that a task has; what comes seldom as points.
  void add_lines(const std::string& label, const std::vector<std::string>& tags,
                 const std::string& settings) {
    std::vector<std::string> curves;
    for (const PlottedRun& run : runs_) {
      for (const TaskSummaries& task : run.tasks) {
        for (const std::string& tag : tags) add_curve(name_of(run, task), task, tag, curves);
      }
    }
    add_panel(label, settings, curves);
  }
  void add_curve(const std::string& name, const TaskSummaries& task, const std::string& tag,
                 std::vector<std::string>& curves) {
    const auto points = task.numbers.find(tag);
    if (points == task.numbers.end()) return;
    const bool seldom = tag.ends_with("/valid");
    std::string rows;
    for (const SummaryPoint& point : points->second) {
      rows += fmt::format("{} {}\n", point.step, point.value);
    }
    curves.push_back(fmt::format("{} using 1:2 with {} title {}", add_data(rows),
                                 seldom ? "points pt 7" : "lines lw 2",
                                 title(seldom ? name + ", valid" : name)));
  }

  std::vector<std::string> speed_tags() const {
    std::set<std::string> tags;
    for (const PlottedRun& run : runs_) {
      for (const TaskSummaries& task : run.tasks) {
        for (const auto& [tag, points] : task.numbers) {
          if (tag.starts_with(kSpeed) && tag != kStepsPerSecond) tags.insert(tag);
        }
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

  /// One above the other, in percent.
  void add_shares(const TaskSummaries& task) {
    std::vector<std::string> names;
    std::map<std::int64_t, std::vector<double>> shares;  // by step, in the order of the names
    for (const auto& [tag, points] : task.numbers) {
      const auto seen = [](const SummaryPoint& point) { return point.value > kSeen; };
      if (!tag.starts_with(kShare) || std::ranges::none_of(points, seen)) continue;
      names.push_back(tag.substr(kShare.size()));
      for (const SummaryPoint& point : points) {
        shares[point.step].resize(names.size());
        shares[point.step].back() = point.value;
      }
    }
    std::string rows;
    for (auto& [step, parts] : shares) {
      parts.resize(names.size());
      double below = 0;
      rows += fmt::format("{} 0", step);
      for (const double part : parts) rows += fmt::format(" {}", below += 100 * part);
      rows += '\n';
    }
    std::vector<std::string> curves;
    if (names.empty()) return;
    const std::string data = add_data(rows);
    for (std::size_t i = 0; i < names.size(); ++i) {
      curves.push_back(fmt::format("{} using 1:{}:{} with filledcurves title {}", data, i + 2,
                                   i + 3, title(names[i])));
    }
    add_panel("time, % (" + task.task + ")", "set yrange [0:100]\n", curves);
  }

  const std::vector<PlottedRun>& runs_;
  std::string data_;
  int count_ = 0;
  std::size_t longest_title_ = 0;
  std::vector<std::string> panels_;
};

}  // namespace

std::string plot_script(const std::vector<PlottedRun>& runs, const std::string& terminal,
                        const std::string& output) {
  Script script(runs);
  script.add_panels();
  return script.text(terminal, output);
}

}  // namespace paceline
