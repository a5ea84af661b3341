#include "params/strategy/job_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/printed.h"
#include "params/strategy/strategy_fields.h"

namespace paceline {
namespace {

/// Flags with their values.
using GivenFlags = std::vector<std::pair<std::string, std::string>>;

GivenFlags flags_in(const std::string& text) {
  GivenFlags flags;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (word.starts_with("--")) {
      flags.emplace_back(word, "");
    } else if (!flags.empty()) {
      flags.back().second = word;
    }
  }
  return flags;
}

std::string value_of(const GivenFlags& flags, std::string_view flag) {
  const auto found = std::ranges::find(flags, flag, &GivenFlags::value_type::first);
  return found == flags.end() ? "" : found->second;
}

int number_of(const GivenFlags& flags, std::string_view flag, int otherwise) {
  const std::string text = value_of(flags, flag);
  int number = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

std::string JobShape::text() const {
  const std::string devices = towers > 1 ? fmt::format(", {} devices", towers) : "";
  if (is_one_process()) return "one process" + devices;
  std::string text(kind().name);
  if (makes_local_steps()) text += fmt::format(" H={}", strategy.local_steps);
  if (makes_local_steps() && !kind().in_rounds(strategy)) text += " async";
  text += ", ";
  if (ps > 0) text += fmt::format("{} ps + ", ps);
  text += counted(workers, "worker");
  if (!wire.exact()) text += ", " + wire.text();
  if (accumulate > 1) text += fmt::format(", accumulate {}", accumulate);
  return devices.empty() ? text : text + devices + " each";
}

std::string flags_of(const JobShape& shape) {
  std::string towers = shape.towers > 1 ? fmt::format("--towers {}", shape.towers) : "";
  if (shape.is_one_process()) return towers;
  std::string flags = fmt::format("--ps {} --workers {}", shape.ps, shape.workers);
  const StrategyKind& kind = shape.kind();
  if (&kind != &default_strategy(kind.cluster)) flags += fmt::format(" --strategy {}", kind.name);
  flags += option_flags(kind, shape.strategy);
  if (shape.accumulate > 1) flags += fmt::format(" --accumulate {}", shape.accumulate);
  if (!towers.empty()) flags += " " + towers;
  return flags + shape.wire.flags();
}

std::optional<JobShape> shape_of(const std::string& text) {
  const GivenFlags flags = flags_in(text);
  JobShape shape{.ps = number_of(flags, "--ps", 0),
                 .workers = number_of(flags, "--workers", 1),
                 .accumulate = number_of(flags, "--accumulate", 1),
                 .towers = number_of(flags, "--towers", 1)};
  const std::string name = value_of(flags, "--strategy");
  const ClusterKind cluster = kind_of(shape.ps, shape.workers);
  const StrategyKind* const kind =
      name.empty() ? &default_strategy(cluster) : find_strategy(name, cluster);
  if (kind == nullptr) return std::nullopt;
  shape.strategy = settled(*kind, strategy_of(name, flags));
  shape.wire.numbers.kept = number_of(flags, "--top-k", 0);
  const std::string wire = value_of(flags, "--wire");
  for (const TravellingType& each : kTravellingTypes) {
    if (each.name == wire) shape.wire.numbers.type = each.type;
  }
  return shape;
}

}  // namespace paceline
