#include "dashboard/terminal_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/failure_text.h"
#include "base/grouped_digits.h"
#include "base/plain_text.h"
#include "base/printed.h"
#include "dashboard/columns.h"
#include "paceline/error.h"
#include "run/report/activities.h"

namespace paceline {
namespace {

using Json = nlohmann::ordered_json;

const ActivityWords& mark_of(const std::string& name) {
  const auto* found = std::ranges::find(kActivityWords, name, &ActivityWords::name);
  if (found == std::end(kActivityWords)) {
    found = std::ranges::find(kActivityWords, "other", &ActivityWords::name);
  }
  return *found;
}

std::string number(const Json& value) {
  return value.is_number() ? rounded(value.get<double>()) : "-";
}

std::string two_digits(const Json& value) {
  return value.is_number() ? fmt::format("{:.2f}", value.get<double>()) : "-";
}

std::string scaled(const Json& value) {
  double number = value.get<double>();
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  for (; number >= 1000 && unit + 1 < std::size(kUnits); ++unit) number /= 1000;
  return rounded(number, 3) + " " + kUnits[unit];
}

std::string time_text(const Json& value) {
  if (!value.is_number()) return "-";
  const auto seconds = std::int64_t(value.get<double>());
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{}:{:02} min", seconds / 60, seconds % 60);
  return fmt::format("{}:{:02} h", seconds / 3600, seconds / 60 % 60);
}

std::string text(const Json& value) {
  return value.is_string() ? plain_text(value.get<std::string>()) : "";
}

const Json& member(const Json& object, std::string_view name) {
  static const Json none;
  if (!object.is_object()) return none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

// Returns the member at a path: "use.cores" in a task.
const Json& member_at(const Json& object, std::string_view path) {
  const std::size_t dot = path.find('.');
  if (dot == path.npos) return member(object, path);
  return member_at(member(object, path.substr(0, dot)), path.substr(dot + 1));
}

std::string cell(const Json& record, const Column& column) {
  const Json& value = member_at(record, column.path);
  if (!value.is_number()) return "-";
  if (column.shown == Column::Shown::kScaled) return scaled(value);
  if (column.shown == Column::Shown::kTwoDigits) return two_digits(value);
  return number(value) + (column.unit == "us" ? " us" : "");
}

// Returns the head of a column. For bytes per second it ends in "/s" ("out/s"), since a number such
// as "1.2 MB" does not show that part of the unit.
std::string head_of(const Column& column) {
  std::string head(column.field.head);
  for (char& letter : head) letter = char(std::tolower(static_cast<unsigned char>(letter)));
  return column.unit == "bytes/s" ? head + "/s" : head;
}

// Counts characters and not bytes: in UTF-8, bytes 10xxxxxx continue a character.
std::string cut(const std::string& line, int columns) {
  int count = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if ((static_cast<unsigned char>(line[i]) & 0xc0) != 0x80 && ++count > columns)
      return line.substr(0, i);
  }
  return line;
}

std::string bar(const Json& share, int width, bool colours) {
  std::string drawn;
  double sum = 0;
  int filled = 0;
  for (const auto& [name, part] : share.items()) {
    sum += part.is_number() ? part.get<double>() : 0;
    const int end = std::min(width, int(std::lround(sum * width)));
    const ActivityWords& mark = mark_of(name);
    const std::string cells(std::size_t(std::max(0, end - filled)), mark.letter);
    if (!cells.empty())
      drawn += colours ? fmt::format("\x1b[30;48;5;{}m{}\x1b[0m", mark.colour, cells) : cells;
    filled = std::max(filled, end);
  }
  return drawn;
}

class View {
 public:
  View(const Json& state, int columns, bool colours)
      : state_(state), columns_(columns), colours_(colours) {}

  std::string draw() {
    head();
    speed();
    line("");
    tasks();
    links();
    lines();
    return text_;
  }

 private:
  void line(const std::string& line) { text_ += cut(line, columns_) + "\n"; }
  // A sentence that is too long continues in the next line.
  void sentence(std::string text) {
    while (int(text.size()) > columns_) {
      const std::size_t blank = text.rfind(' ', std::size_t(columns_));
      if (blank == std::string::npos || blank == 0) break;
      line(text.substr(0, blank));
      text.erase(0, blank + 1);
    }
    line(text);
  }

  void head() {
    const Json& run = state_.at("run");
    line(fmt::format("{}  {}  {}  {}{}", text(run.at("model")), text(run.at("strategy")),
                     text(state_.at("state")), time_text(state_.at("seconds")),
                     text(run.at("out")).empty() ? "" : "  in " + text(run.at("out"))));
  }

  int shown_workers() const {
    return int(std::ranges::count_if(state_.at("tasks"), [](const Json& task) {
      return text(task.at("task")).starts_with("worker:");
    }));
  }

  void speed() {
    std::string speed = number(state_.at("steps_per_s")) + " steps/s";
    if (const Json expected = state_.at("expected"); expected.is_object()) {
      const Json workers = member(expected, "workers");
      const bool of_some = workers.is_number() && workers.get<int>() > shown_workers();
      speed += fmt::format(" ({}expected {}, {} to {})",
                           of_some ? fmt::format("of all {} workers ", workers.get<int>()) : "",
                           number(member(expected, "steps_per_s")), number(member(expected, "low")),
                           number(member(expected, "high")));
    }
    const Json goal = member(state_.at("goal"), "global_step"), step = state_.at("global_step");
    line(fmt::format("{}  step {}{}  loss {}", speed,
                     step.is_number() ? grouped_digits(step.get<std::int64_t>()) : "0",
                     goal.is_number() ? " of " + grouped_digits(goal.get<std::int64_t>()) : "",
                     number(member(state_.at("loss"), "last"))));
    sentence(text(state_.at("cause")));
  }

  void tasks() {
    const std::vector<Column> shown = in_terminal(task_columns());
    std::string heads = fmt::format("{:<11}", "task");
    for (const Column& each : shown)
      heads += fmt::format("{:>{}}", head_of(each), each.field.width);
    line(heads + "  time");
    const int before = int(heads.size()) + 2;
    const int width = std::clamp(columns_ - before, 10, 60);
    std::vector<std::string> seen;
    for (const Json& task : state_.at("tasks")) {
      const Json& share = task.at("recent").at("share");
      std::string row = fmt::format("{:<11}", text(task.at("task")));
      for (const Column& each : shown) {
        row += fmt::format("{:>{}}", cell(task, each), each.field.width);
      }
      text_ += cut(row + " ", columns_);
      if (columns_ >= before + 10) text_ += " " + bar(share, width, colours_);
      text_ += trouble(task) + "\n";
      for (const auto& [name, part] : share.items()) {
        constexpr double kSeen = 0.005;
        const bool drawn = part.is_number() && part.get<double>() >= kSeen;
        if (drawn && std::ranges::find(seen, name) == seen.end()) seen.push_back(name);
      }
    }
    std::string legend;
    for (const std::string& name : seen) {
      const ActivityWords& mark = mark_of(name);
      if (mark.letter != ' ')
        legend += fmt::format("{}{} {}", legend.empty() ? "" : "  ", mark.letter, mark.name);
    }
    if (!legend.empty()) line("time: " + legend);
  }

  static std::string trouble(const Json& task) {
    constexpr double kStill = 5;
    const Json &heard = task.at("heard_s"), &still = task.at("still_s");
    if (!heard.is_number()) return "  not heard of";
    if (heard.get<double>() > kStill) return "  silent for " + time_text(heard);
    return still.is_number() && still.get<double>() > kStill ? "  no step for " + time_text(still)
                                                             : "";
  }

  static std::vector<Column> in_terminal(std::vector<Column> columns) {
    std::erase_if(columns, [](const Column& each) { return each.field.width == 0; });
    return columns;
  }

  static std::string kind_of(const Json& link) {
    return text(link.at("kind")) + (link.value("encrypted", false) ? "+tls" : "");
  }

  void links() {
    const std::vector<Column> shown = in_terminal(link_columns());
    bool any = false;
    for (const Json& task : state_.at("tasks")) {
      for (const Json& link : member(task, "links")) {
        std::string heads = fmt::format("\n{:<24}{:<9}", "link", "kind");
        std::string row = fmt::format(
            "{:<24}{:<9}", text(task.at("task")) + " > " + text(link.at("to")), kind_of(link));
        for (const Column& each : shown) {
          heads += fmt::format("{:>{}}", head_of(each), each.field.width);
          row += fmt::format("{:>{}}", cell(link, each), each.field.width);
        }
        if (!any) line(heads);
        any = true;
        line(row);
      }
    }
  }

  void lines() {
    constexpr std::size_t kMost = 4;
    line("");
    for (const Json& task : state_.at("tasks")) {
      const Json& said = task.at("lines");
      for (std::size_t i = said.size() - std::min(said.size(), kMost); i < said.size(); ++i) {
        line(fmt::format("{:<10}| {}", text(task.at("task")), text(said[i])));
      }
    }
  }

  const Json& state_;
  const int columns_;
  const bool colours_;
  std::string text_;
};

}  // namespace

std::string terminal_view(const std::string& state, int columns, bool colours) {
  try {
    return View(Json::parse(state), columns, colours).draw();
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::kDataLoss,
                fmt::format("not the state of a run: {}", failure_text(error)));
  }
}

}  // namespace paceline
