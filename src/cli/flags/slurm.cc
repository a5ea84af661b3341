#include "cli/flags/slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "cli/flags/flag_checks.h"
#include "cli/flags/launch_port.h"
#include "cli/flags/placed_flags.h"

namespace paceline {
namespace {

constexpr std::size_t kMostNodes = 100'000;

[[noreturn]] void refuse_variable(const std::string& variable, std::string_view text,
                                  const std::string& why) {
  refuse_flags(fmt::format("Slurm: {}={}: {}", variable, text, why));
}

std::optional<int> number_in(std::string_view text) {
  int number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || status != std::errc() || end != text.data() + text.size() || number < 0)
    return std::nullopt;
  return number;
}

int number_of(const Environment& environment, const char* variable) {
  const std::string_view text = text_in(environment, variable);
  if (text.empty())
    refuse_flags(fmt::format(
        "Slurm has started several processes of this command (SLURM_STEP_NUM_TASKS={}) and does "
        "not "
        "say ${}: start them with srun, or give each --cluster and --task; --alone says that each "
        "is to train the whole job by itself",
        text_in(environment, "SLURM_STEP_NUM_TASKS"), variable));
  const std::optional<int> number = number_in(text);
  if (!number) refuse_variable(variable, text, "must be a whole number");
  return *number;
}

/// Returns the parts of the list between commas; commas in brackets do not count.
std::vector<std::string_view> parts_of(std::string_view list) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') ++depth;
    if (i < list.size() && list[i] == ']') --depth;
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    parts.push_back(list.substr(begin, i - begin));
    begin = i + 1;
  }
  return parts;
}

/// Expands "01-03,7" to 01, 02, 03 and 7: numbers keep their leading zeros.
std::vector<std::string> numbers_of(const std::string& variable, std::string_view list,
                                    std::string_view ranges) {
  std::vector<std::string> numbers;
  for (const std::string_view range : parts_of(ranges)) {
    const std::size_t dash = range.find('-');
    const std::string_view first = range.substr(0, dash);
    const std::string_view last = dash == range.npos ? first : range.substr(dash + 1);
    const std::optional<int> from = number_in(first), to = number_in(last);
    if (!from || !to || *to < *from || std::size_t(*to - *from) >= kMostNodes)
      refuse_variable(variable, list, fmt::format("'{}' is no range of numbers", range));
    for (int number = *from; number <= *to; ++number)
      numbers.push_back(fmt::format("{:0{}}", number, first.size()));
  }
  return numbers;
}

/// "r[1-2]n[0-1]" gives r1n0, r1n1, r2n0 and r2n1.
std::vector<std::string> names_of(const std::string& variable, std::string_view list,
                                  std::string_view part) {
  std::vector<std::string> names = {""};
  while (!part.empty()) {
    const std::size_t open = part.find('['), close = part.find(']');
    if (open == part.npos || close == part.npos || close < open) {
      if (open != part.npos || close != part.npos)
        refuse_variable(variable, list, fmt::format("'{}' has a bracket too many", part));
      for (std::string& name : names) name += part;
      break;
    }
    const auto numbers = numbers_of(variable, list, part.substr(open + 1, close - open - 1));
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const std::string& number : numbers)
        longer.push_back(fmt::format("{}{}{}", name, part.substr(0, open), number));
    }
    if (longer.size() > kMostNodes) refuse_variable(variable, list, "names too many nodes");
    names = std::move(longer);
    part.remove_prefix(close + 1);
  }
  return names;
}

struct Place {
  int node = 0, local = 0;
};

/// Returns the places of the tasks by rank. The tasks of a node have consecutive ranks (block), or
/// ranks go round the nodes (cyclic).
std::vector<Place> places_of(const std::vector<int>& counts, bool cyclic) {
  std::vector<Place> places;
  for (int node = 0; node < int(counts.size()); ++node) {
    for (int local = 0; local < counts[std::size_t(node)]; ++local) places.push_back({node, local});
  }
  if (cyclic) std::ranges::stable_sort(places, {}, &Place::local);
  return places;
}

bool is_cyclic(const Environment& environment) {
  const std::string_view text = text_in(environment, "SLURM_DISTRIBUTION");
  const std::string_view nodes = text.substr(0, text.find_first_of(":,"));
  if (nodes == "cyclic") return true;
  if (!nodes.empty() && nodes != "block" && nodes != "*" && nodes != "default")
    refuse_variable("SLURM_DISTRIBUTION", text,
                    "tasks are found where they lie in blocks or go round the nodes (srun "
                    "--distribution block, or cyclic)");
  return false;
}

/// Returns the first port of a step. Steps on one machine mostly get different ports.
int first_port(int job, int step, int tasks_on_node) {
  const int spans = std::max(kLaunchPorts / tasks_on_node, 1);
  return kFirstLaunchPort + int((std::int64_t(job) * 31 + step) % spans) * tasks_on_node;
}

void check_place(const Environment& environment, int rank, const Place& place) {
  const std::pair<const char*, int> said[] = {{"SLURM_NODEID", place.node},
                                              {"SLURM_LOCALID", place.local}};
  for (const auto& [variable, expected] : said) {
    const std::string_view text = text_in(environment, variable);
    if (text.empty() || number_in(text) == expected) continue;
    refuse_flags(fmt::format(
        "Slurm: {}={} and SLURM_PROCID={} contradict SLURM_STEP_TASKS_PER_NODE={}, by which it is "
        "{}; start the step with srun --distribution block",
        variable, text, rank, text_in(environment, "SLURM_STEP_TASKS_PER_NODE"), expected));
  }
}

}  // namespace

std::vector<std::string> slurm_nodes(const std::string& variable, std::string_view list) {
  std::vector<std::string> nodes;
  for (const std::string_view part : parts_of(list)) {
    if (part.empty()) refuse_variable(variable, list, "a name is missing");
    for (std::string& name : names_of(variable, list, part)) nodes.push_back(std::move(name));
    if (nodes.size() > kMostNodes) refuse_variable(variable, list, "names too many nodes");
  }
  return nodes;
}

std::vector<int> slurm_counts(const std::string& variable, std::string_view list) {
  std::vector<int> counts;
  for (const std::string_view part : parts_of(list)) {
    const std::size_t times = part.find("(x");
    const std::optional<int> count = number_in(part.substr(0, times));
    std::optional<int> nodes = 1;
    if (times != part.npos)
      nodes = !part.ends_with(')') ? std::nullopt
                                   : number_in(part.substr(times + 2, part.size() - times - 3));
    if (!count || !nodes || *count == 0 || counts.size() + std::size_t(*nodes) > kMostNodes ||
        (times == part.npos && part.find_first_of("()") != part.npos))
      refuse_variable(variable, list,
                      fmt::format("'{}' is no number of tasks, as 2 or 2(x3)", part));
    counts.insert(counts.end(), std::size_t(*nodes), *count);
  }
  return counts;
}

std::vector<GivenFlag> flags_of_slurm(const Environment& environment, int ps) {
  for (const char* const variable : {"SLURM_HET_SIZE", "SLURM_HET_GROUP_ID"}) {
    const std::string_view text = text_in(environment, variable);
    if (!text.empty())
      refuse_variable(variable, text,
                      "the parts of a heterogeneous job are not joined: use one part, or give each "
                      "task --cluster and --task");
  }
  const int tasks = number_of(environment, "SLURM_STEP_NUM_TASKS");
  const int rank = number_of(environment, "SLURM_PROCID");
  const std::string_view list = text_in(environment, "SLURM_STEP_NODELIST");
  const std::string_view per_node = text_in(environment, "SLURM_STEP_TASKS_PER_NODE");
  if (list.empty()) number_of(environment, "SLURM_STEP_NODELIST");
  if (per_node.empty()) number_of(environment, "SLURM_STEP_TASKS_PER_NODE");
  const auto nodes = slurm_nodes("SLURM_STEP_NODELIST", list);
  const auto counts = slurm_counts("SLURM_STEP_TASKS_PER_NODE", per_node);
  if (nodes.size() != counts.size())
    refuse_flags(
        fmt::format("Slurm: SLURM_STEP_NODELIST={} names {} nodes, and "
                    "SLURM_STEP_TASKS_PER_NODE={} is for {}",
                    list, nodes.size(), per_node, counts.size()));
  const std::vector<Place> places = places_of(counts, is_cyclic(environment));
  if (int(places.size()) != tasks || rank >= tasks)
    refuse_flags(
        fmt::format("Slurm: SLURM_STEP_NUM_TASKS={} and SLURM_PROCID={} contradict "
                    "SLURM_STEP_TASKS_PER_NODE={}, which is {} tasks",
                    tasks, rank, per_node, places.size()));
  check_place(environment, rank, places[std::size_t(rank)]);
  const int port = first_port(number_of(environment, "SLURM_JOB_ID"),
                              number_in(text_in(environment, "SLURM_STEP_ID")).value_or(0),
                              *std::ranges::max_element(counts));
  std::vector<std::string> addresses;
  for (const auto& [node, local] : places)
    addresses.push_back(fmt::format("{}:{}", nodes[std::size_t(node)], port + local));
  return placed_flags("Slurm", fmt::format("SLURM_STEP_NODELIST={}, SLURM_PROCID={}", list, rank),
                      rank, addresses, ps);
}

}  // namespace paceline
