#include "launch/lab/lab_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "launch/placement.h"
#include "paceline/cluster.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr int kMostOfAHost = 1000;

std::optional<int> whole_number(std::string_view text) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, number);
  if (status != std::errc() || stop != end || number < 0 || number > kMostOfAHost) return {};
  return number;
}

// Returns the number of parameter servers in a text such as "ps" or "3ps".
std::optional<int> count_of_ps(std::string_view text) {
  if (!text.ends_with("ps")) return {};
  text.remove_suffix(2);
  return text.empty() ? 1 : whole_number(text);
}

// Adds the tasks of one host, such as "ps+2". Returns false if the text describes no host.
bool add_host(LabOptions& lab, std::string_view text) {
  const std::size_t plus = text.find('+');
  const std::optional<int> ps = count_of_ps(text.substr(0, plus));
  std::optional<int> workers = 0;
  if (!ps && plus != std::string_view::npos) return false;
  if (!ps) workers = whole_number(text);
  if (plus != std::string_view::npos) workers = whole_number(text.substr(plus + 1));
  if (!workers) return false;
  lab.ps.insert(lab.ps.end(), std::size_t(ps.value_or(0)), lab.hosts);
  lab.workers.insert(lab.workers.end(), std::size_t(*workers), lab.hosts);
  ++lab.hosts;
  return true;
}

}  // namespace

LabOptions parse_lab_place(const std::string& text) {
  LabOptions lab;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('/', begin), text.size());
    const std::string host = text.substr(begin, end - begin);
    if (!add_host(lab, host)) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("'{}' is no host: it must be like 'ps+2' (a parameter server and 2 "
                              "workers), '2' (2 workers) or '2ps'",
                              host));
    }
    begin = end + 1;
  }
  return lab;
}

void spread_tasks(LabOptions& lab, int ps, int workers) {
  const Placement placement = spread_tasks(lab.hosts, ps, workers);
  lab.ps = placement.ps;
  lab.workers = placement.workers;
}

std::string lab_text(const LabOptions& lab) {
  std::vector<std::vector<std::string>> tasks(std::size_t(lab.hosts));
  for (const TaskId::Role role : {TaskId::Role::kPs, TaskId::Role::kWorker}) {
    int index = 0;
    for (const int host : role == TaskId::Role::kPs ? lab.ps : lab.workers) {
      tasks[std::size_t(host)].push_back(TaskId{role, index++}.str());
    }
  }
  std::string text = fmt::format("Emulated hosts, with links of {:g} Gbit/s{}:\n", lab.gbps,
                                 lab.delay_ms > 0 ? fmt::format(" and {:g} ms", lab.delay_ms) : "");
  for (int host = 0; host < lab.hosts; ++host) {
    const std::vector<std::string>& here = tasks[std::size_t(host)];
    text += fmt::format("  {:<11}{}\n", lab_address(host),
                        here.empty() ? "no task" : fmt::format("{}", fmt::join(here, ", ")));
  }
  return text;
}

std::string lab_address(int host) {
  // Hosts of the network 10.77.0.0/16 are numbered from 1.
  constexpr int kOfByte = 250;
  return fmt::format("10.77.{}.{}", host / kOfByte, host % kOfByte + 1);
}

}  // namespace paceline
