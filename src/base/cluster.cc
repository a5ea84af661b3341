#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "base/address.h"
#include "base/nearest.h"
#include "paceline/cluster.h"
#include "paceline/error.h"

namespace paceline {

namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::kUsage, message); }

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

TaskId::Role role_of(const std::string& name) {
  if (name == "ps") return TaskId::Role::kPs;
  if (name == "worker") return TaskId::Role::kWorker;
  refuse(
      fmt::format("unknown job '{}'{} (ps, worker)", name, did_you_mean(name, {"ps", "worker"})));
}

int port_of(const std::string& address) {
  try {
    return parse_address(address).port;
  } catch (const Error& error) {
    refuse(error.what());
  }
}

void check_address(const std::string& address) {
  if (port_of(address) == 0)
    refuse(fmt::format("'{}' is no address of a task: its port is 1 to 65535", address));
}

// Refuses two tasks at one address: each would take the other's messages, or fail to listen much
// later.
void check_duplicates(const ClusterSpec& spec) {
  std::map<std::string, std::string> taken;
  const auto take = [&](const std::vector<std::string>& addresses, const std::string& role) {
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      const std::string task = fmt::format("{}:{}", role, i);
      const auto [other, fresh] = taken.emplace(addresses[i], task);
      if (!fresh) {
        refuse(
            fmt::format("{} is the address of both {} and {}", addresses[i], other->second, task));
      }
    }
  };
  take(spec.ps, "ps");
  take(spec.workers, "worker");
  take(spec.evaluators, "evaluator");
}

std::vector<std::string>& addresses_of(ClusterSpec& spec, const std::string& role) {
  if (role == "evaluator") return spec.evaluators;
  return role_of(role) == TaskId::Role::kPs ? spec.ps : spec.workers;
}

}  // namespace

ClusterSpec ClusterSpec::parse(const std::string& text) {
  ClusterSpec spec;
  for (const std::string& part : split(text, ';')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) {
      refuse(fmt::format("'{}' is no job: write ps=host:port,…;worker=host:port,…", part));
    }
    const std::string name = part.substr(0, equals);
    std::vector<std::string>& addresses = addresses_of(spec, name);
    if (!addresses.empty()) refuse(fmt::format("job '{}' is given twice", name));
    addresses = split(std::string_view(part).substr(equals + 1), ',');
    for (const std::string& address : addresses) check_address(address);
  }
  check_duplicates(spec);
  return spec;
}

std::string ClusterSpec::str() const {
  std::string text;
  if (!ps.empty()) text += fmt::format("ps={}", fmt::join(ps, ","));
  if (!ps.empty() && !workers.empty()) text += ';';
  if (!workers.empty()) text += fmt::format("worker={}", fmt::join(workers, ","));
  return text;
}

TaskId TaskId::parse(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) {
    refuse(fmt::format("'{}' is no task: write ps:INDEX or worker:INDEX", text));
  }
  TaskId task{role_of(text.substr(0, colon)), 0};
  const char* end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data() + colon + 1, end, task.index);
  if (status != std::errc() || stop != end || task.index < 0) {
    refuse(fmt::format("'{}': a task's index is a number from 0", text));
  }
  return task;
}

std::string TaskId::str() const {
  return fmt::format("{}:{}", role == Role::kPs ? "ps" : "worker", index);
}

}  // namespace paceline
