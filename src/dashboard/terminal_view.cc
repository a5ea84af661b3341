#include "dashboard/terminal_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/failure_text.h"
#include "base/grouped_digits.h"
#include "base/plain_text.h"
#include "base/printed.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using Json = nlohmann::ordered_json;

/// How an activity is drawn: a letter, and a colour of a terminal of 256.
struct Mark {
  const char* name;
  char letter;
  int colour;
};
constexpr Mark kMarks[] = {{"input", 'i', 214}, {"compute", 'c', 36}, {"pull", 'p', 74},
                           {"push", 'u', 32},   {"apply", 'a', 184},  {"wait", 'w', 166},
                           {"other", '.', 245}, {"queue", 'q', 175},  {"idle", ' ', 250}};

const Mark& mark_of(const std::string& name) {
  const auto found = std::ranges::find(kMarks, name, &Mark::name);
  return found == std::end(kMarks) ? kMarks[6] : *found;
}

std::string number(const Json& value) {
  return value.is_number() ? rounded(value.get<double>()) : "-";
}

std::string two_digits(const Json& value) {
  return value.is_number() ? fmt::format("{:.2f}", value.get<double>()) : "-";
}

std::string bytes(const Json& value) {
  if (!value.is_number()) return "-";
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

const Json& member(const Json& object, const char* name) {
  static const Json none;
  if (!object.is_object()) return none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

// Characters, not bytes: a letter of UTF-8 goes on in bytes 10xxxxxx.
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
    const Mark& mark = mark_of(name);
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
  // A sentence goes on in the next line.
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
    constexpr int kBefore = 67;
    const int width = std::clamp(columns_ - kBefore, 10, 60);
    line(fmt::format("{:<11}{:>10}{:>9}{:>9}{:>9}{:>7}{:>10}  time", "task", "steps", "steps/s",
                     "p50 ms", "stale", "cores", "memory"));
    std::vector<std::string> seen;
    for (const Json& task : state_.at("tasks")) {
      const Json &recent = task.at("recent"), &share = recent.at("share");
      const Json& use = member(task, "use");
      text_ += cut(fmt::format("{:<11}{:>10}{:>9}{:>9}{:>9}{:>7}{:>10} ", text(task.at("task")),
                               number(member(task, "steps")), number(recent.at("steps_per_s")),
                               number(member(member(task, "step_ms"), "p50")),
                               two_digits(recent.at("staleness")), two_digits(member(use, "cores")),
                               bytes(member(use, "peak_memory_bytes"))),
                   columns_);
      if (columns_ >= kBefore + 10) text_ += " " + bar(share, width, colours_);
      text_ += trouble(task) + "\n";
      for (const auto& [name, part] : share.items()) {
        constexpr double kSeen = 0.005;
        const bool drawn = part.is_number() && part.get<double>() >= kSeen;
        if (drawn && std::ranges::find(seen, name) == seen.end()) seen.push_back(name);
      }
    }
    std::string legend;
    for (const std::string& name : seen) {
      const Mark& mark = mark_of(name);
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

  static std::string kind_of(const Json& link) {
    return text(link.at("kind")) + (link.value("encrypted", false) ? "+tls" : "");
  }

  void links() {
    bool any = false;
    for (const Json& task : state_.at("tasks")) {
      for (const Json& link : member(task, "links")) {
        if (!any)
          line(fmt::format("\n{:<24}{:<9}{:>12}{:>12}{:>12}", "link", "kind", "round trip", "out/s",
                           "in/s"));
        any = true;
        const Json &trip = link.at("round_trip_us"), &rate = link.at("bytes_per_s");
        line(fmt::format("{:<24}{:<9}{:>12}{:>12}{:>12}",
                         text(task.at("task")) + " > " + text(link.at("to")), kind_of(link),
                         trip.is_number() ? number(trip) + " us" : "-", bytes(rate.at("sent")),
                         bytes(rate.at("received"))));
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
