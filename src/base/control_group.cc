#include "base/control_group.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

namespace paceline {
namespace {

/// A mounted hierarchy of control groups: the one of v2, or one of v1 with its controllers.
struct Hierarchy {
  std::string root, mount;               // the group that is mounted, and where
  std::vector<std::string> controllers;  // of v1; none: it is v2
};

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

// A line of /proc/self/mountinfo: "36 35 0:31 ROOT MOUNT options … - TYPE SOURCE OPTIONS".
std::vector<Hierarchy> mounted_hierarchies(const std::string& root) {
  std::vector<Hierarchy> found;
  std::ifstream lines(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = split(line, ' ');
    const auto dash = std::ranges::find(words, "-");
    if (words.size() < 6 || words.end() - dash < 4) continue;
    if (*(dash + 1) == "cgroup2") found.push_back({words[3], words[4], {}});
    if (*(dash + 1) == "cgroup") found.push_back({words[3], words[4], split(*(dash + 3), ',')});
  }
  return found;
}

// Returns the path of this process's group below the mount; empty if the mount does not show the
// group, as with the path "/../x". /proc/self/cgroup has lines such as "4:cpu,cpuacct:/a/b" for v1,
// and "0::/a/b" for v2.
std::string path_of_group(const std::string& root, const Hierarchy& in) {
  std::ifstream lines(root + "/proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::vector<std::string> controllers =
        split(line.substr(first + 1, second - first - 1), ',');
    const bool same = controllers.empty() || controllers.front().empty()
                          ? in.controllers.empty()
                          : std::ranges::count(in.controllers, controllers.front()) > 0;
    if (!same) continue;
    std::string path = line.substr(second + 1);
    if (path.find("/..") != std::string::npos) return "";
    if (in.root == "/") return path;
    return path.starts_with(in.root) ? path.substr(in.root.size()) : "";
  }
  return "";
}

std::optional<std::int64_t> number_in(const std::string& path) {
  std::int64_t number = 0;
  if (std::ifstream(path) >> number) return number;
  return std::nullopt;
}

// Returns the number in the line "name 123" of a file; 0 if there is no such line.
std::int64_t number_of(const std::string& path, std::string_view name) {
  std::ifstream lines(path);
  std::string word;
  for (std::int64_t number = 0; lines >> word >> number;) {
    if (word == name) return number;
  }
  return 0;
}

void take(std::optional<GroupLimit>& smallest, GroupLimit limit) {
  if (!smallest || limit.most < smallest->most) smallest = std::move(limit);
}

/// Reads the files of one group.
class Group {
 public:
  Group(std::string shown, const std::string& root, bool v2)
      : shown_(std::move(shown)), folder_(root + shown_), v2_(v2) {}

  void add_to(ControlGroupLimits& limits) const {
    const std::optional<double> cores = v2_ ? cores_of_v2() : cores_of_v1();
    if (cores) limits.cores = std::min(limits.cores.value_or(*cores), *cores);
    add_memory(limits);
    if (const auto most = number_in(folder_ + "/pids.max"))
      take(limits.processes,
           {*most, shown_ + "/pids.max", number_in(folder_ + "/pids.current").value_or(0)});
  }

 private:
  // cpu.max holds the quota and the period in microseconds: "150000 100000" or "max 100000".
  std::optional<double> cores_of_v2() const {
    double quota = 0, period = 0;
    if (std::ifstream(folder_ + "/cpu.max") >> quota >> period && period > 0) return quota / period;
    return std::nullopt;
  }
  std::optional<double> cores_of_v1() const {
    const auto quota = number_in(folder_ + "/cpu.cfs_quota_us"),
               period = number_in(folder_ + "/cpu.cfs_period_us");
    if (quota && period && *quota > 0 && *period > 0) return double(*quota) / double(*period);
    return std::nullopt;
  }
  void add_memory(ControlGroupLimits& limits) const {
    const char* const most_file = v2_ ? "/memory.max" : "/memory.limit_in_bytes";
    const auto most = number_in(folder_ + most_file);
    // v1 says "no limit" by a number near 2^63.
    if (!most || *most > std::int64_t(1) << 60) return;
    const std::int64_t used =
        number_in(folder_ + (v2_ ? "/memory.current" : "/memory.usage_in_bytes")).value_or(0);
    const std::int64_t files =
        number_of(folder_ + "/memory.stat", v2_ ? "inactive_file" : "total_inactive_file");
    take(limits.memory, {*most, shown_ + most_file, std::max<std::int64_t>(0, used - files)});
    limits.killed_for_memory =
        std::max(limits.killed_for_memory,
                 number_of(folder_ + (v2_ ? "/memory.events" : "/memory.oom_control"), "oom_kill"));
  }

  const std::string shown_, folder_;
  const bool v2_;
};

}  // namespace

ControlGroupLimits control_group_limits(const std::string& root) {
  ControlGroupLimits limits;
  for (const Hierarchy& in : mounted_hierarchies(root)) {
    std::filesystem::path path = in.mount + path_of_group(root, in);
    while (true) {
      std::string shown = path.lexically_normal().string();
      if (shown.size() > 1 && shown.ends_with('/')) shown.pop_back();
      Group(shown, root, in.controllers.empty()).add_to(limits);
      if (shown.size() <= in.mount.size()) break;
      path = std::filesystem::path(shown).parent_path();
    }
  }
  if (!limits.memory) limits.killed_for_memory = number_of(root + "/proc/vmstat", "oom_kill");
  return limits;
}

}  // namespace paceline
