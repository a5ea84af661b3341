#include "cli/automatic_way.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

#include "base/print_text.h"
#include "base/printed.h"
#include "paceline/error.h"
#include "params/strategy/strategies.h"

namespace paceline {
namespace {

constexpr const char* kStrategyFlag = "--strategy";
constexpr double kWorthOfLocalSteps = 1 / 1.1;  // they must bring a tenth
constexpr double kWorthOfOneProcess = 1.02;     // more tasks must bring a fiftieth

const StrategyKind& kind_of_way(const ComparedWay& way) {
  return strategy_kind(way.strategy, kind_of(way.ps, way.workers));
}

bool is_one_process(const ComparedWay& way) { return way.ps == 0 && way.workers == 1; }

double worth(const ComparedWay& way) {
  if (!kind_of_way(way).exact()) return way.steps_per_s * kWorthOfLocalSteps;
  return is_one_process(way) ? way.steps_per_s * kWorthOfOneProcess : way.steps_per_s;
}

std::string words_of(const ComparedWay& way) {
  if (is_one_process(way)) return "one process";
  return fmt::format("--ps {} --workers {} --strategy {}", way.ps, way.workers,
                     kind_of_way(way).name);
}

bool goes_with(const std::vector<std::string>& arguments,
               const std::function<void(const std::vector<std::string>&)>& check) {
  try {
    check(arguments);
    return true;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUsage) return false;
    throw;
  }
}

}  // namespace

bool leaves_way_open(const FlagValues& values, const Cluster& cluster) {
  const bool starts_tasks =
      cluster.process == Cluster::Process::kLauncher && !cluster.existing_servers;
  return values.text(kStrategyFlag) == kAutomatic && !values.given("--predict") &&
         (starts_tasks || cluster.process == Cluster::Process::kAlone);
}

std::vector<ComparedWay> by_preference(std::vector<ComparedWay> ways) {
  std::ranges::stable_sort(ways, std::greater{}, worth);
  return ways;
}

std::vector<std::string> with_way(const std::vector<std::string>& arguments,
                                  const FlagValues& values, const ComparedWay& way) {
  std::vector<std::string> chosen;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == fmt::format("{}={}", kStrategyFlag, kAutomatic)) continue;
    if (arguments[i] == kStrategyFlag && i + 1 < arguments.size()) {
      ++i;
      continue;
    }
    chosen.push_back(arguments[i]);
  }
  const auto add = [&](const std::string& flag, int count) {
    if (!values.on_command_line(flag)) chosen.insert(chosen.end(), {flag, std::to_string(count)});
  };
  if (!is_one_process(way)) {
    add("--ps", way.ps);
    add("--workers", way.workers);
  }
  chosen.insert(chosen.end(), {kStrategyFlag, std::string(kind_of_way(way).name)});
  return chosen;
}

std::vector<std::string> with_fastest_way(
    const std::vector<std::string>& arguments, const FlagValues& values,
    std::vector<ComparedWay> ways,
    const std::function<void(const std::vector<std::string>&)>& check) {
  const auto say = [&](const std::string& text) {
    if (!values.given("--quiet")) print_text(stdout, "--strategy auto: " + text + "\n");
  };
  ways = by_preference(std::move(ways));
  for (std::size_t i = 0; i < ways.size(); ++i) {
    std::vector<std::string> chosen = with_way(arguments, values, ways[i]);
    if (!goes_with(chosen, check)) continue;
    std::string text = fmt::format("of {} takes {}, of which {} steps/s are expected",
                                   counted(std::int64_t(ways.size()), "way"), words_of(ways[i]),
                                   rounded(ways[i].steps_per_s));
    if (i + 1 < ways.size()) {
      text +=
          fmt::format(" (next: {}, {})", words_of(ways[i + 1]), rounded(ways[i + 1].steps_per_s));
    }
    say(text);
    return chosen;
  }
  say("no speed can be expected of this job; takes the usual strategy");
  return arguments;
}

}  // namespace paceline
