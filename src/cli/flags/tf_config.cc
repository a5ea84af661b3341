#include "cli/flags/tf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/nearest.h"
#include "paceline/cluster.h"
#include "paceline/error.h"
#include "run/config/config_value.h"

namespace paceline {

namespace {

using Kind = ConfigValue::Kind;

constexpr std::array<std::string_view, 5> kJobs = {"chief", "master", "worker", "ps", "evaluator"};

[[noreturn]] void refuse_at(const ConfigValue& value, const std::string& why) {
  throw Error(ErrorCode::kUsage,
              fmt::format("{}: {}", place_of("TF_CONFIG", value.line, value.column), why));
}

void check_job(const ConfigValue& at, const std::string& name) {
  if (std::ranges::find(kJobs, name) != kJobs.end()) return;
  const std::vector<std::string_view> known(kJobs.begin(), kJobs.end());
  refuse_at(at, fmt::format("unknown job '{}'{} ({})", name, did_you_mean(name, known),
                            fmt::join(known, ", ")));
}

using Addresses = std::vector<std::string>;

Addresses addresses_of(const ConfigValue* cluster, std::string_view job) {
  const ConfigValue* const list = cluster != nullptr ? cluster->find(job) : nullptr;
  if (list == nullptr) return {};
  if (list->kind != Kind::kList) {
    refuse_at(*list, fmt::format("'{}' must be a list of addresses", job));
  }
  Addresses addresses;
  for (const ConfigValue& item : list->items) {
    if (item.kind != Kind::kText) {
      refuse_at(item, fmt::format("an address of '{}' must be a string \"host:port\"", job));
    }
    // The addresses are joined into one text, so they must not contain its separators.
    if (item.text.find_first_of(",;=") != std::string::npos) {
      refuse_at(item, fmt::format("'{}' is not an address \"host:port\"", item.text));
    }
    addresses.push_back(item.text);
  }
  return addresses;
}

/// The addresses of the tasks of each job.
struct TfCluster {
  Addresses chief, workers, ps;
  Addresses evaluators;  // take no part in training
};

TfCluster read_jobs(const ConfigValue& cluster) {
  if (cluster.kind != Kind::kTable) refuse_at(cluster, "'cluster' must be a table of jobs");
  for (const ConfigValue& job : cluster.items) check_job(job, job.key);
  TfCluster jobs{addresses_of(&cluster, "chief"), addresses_of(&cluster, "worker"),
                 addresses_of(&cluster, "ps"), addresses_of(&cluster, "evaluator")};
  const Addresses master = addresses_of(&cluster, "master");
  if (!master.empty() && !jobs.chief.empty()) {
    refuse_at(*cluster.find("master"), "'chief' and 'master' are the same job: give one of them");
  }
  if (jobs.chief.empty()) jobs.chief = master;
  if (jobs.chief.size() > 1) refuse_at(cluster, "there is only one chief (or master)");
  return jobs;
}

int read_index(const ConfigValue& task, std::string_view type) {
  const ConfigValue* const index = task.find("index");
  if (index == nullptr) refuse_at(task, fmt::format("the task has a type, {}, but no index", type));
  int number = -1;
  const char* const end = index->text.data() + index->text.size();
  const auto [stop, status] = std::from_chars(index->text.data(), end, number);
  if (status != std::errc() || stop != end || number < 0) {
    refuse_at(*index, "the task's index must be a whole number from 0 on");
  }
  return number;
}

// Returns the task in the form of --task, with its numbering: "worker:2".
std::string read_tf_task(const ConfigValue& task, const TfCluster& jobs) {
  if (task.kind != Kind::kTable) refuse_at(task, "'task' must be a table {type, index}");
  const ConfigValue* const type = task.find("type");
  if (type == nullptr || type->kind != Kind::kText) {
    refuse_at(type != nullptr ? *type : task,
              "the task's type must be a string such as \"worker\"");
  }
  check_job(*type, type->text);
  const int index = read_index(task, type->text);
  const bool chief = type->text == "chief" || type->text == "master";
  if (type->text == "evaluator") return fmt::format("evaluator:{}", index);
  const Addresses& addresses = chief ? jobs.chief : type->text == "ps" ? jobs.ps : jobs.workers;
  if (std::size_t(index) >= addresses.size()) {
    refuse_at(task, fmt::format("task {}:{} is not in the cluster, which has {} of that job",
                                type->text, index, addresses.size()));
  }
  if (type->text == "ps") return fmt::format("ps:{}", index);
  return fmt::format("worker:{}", chief ? 0 : index + int(jobs.chief.size()));
}

std::string spec_of(const TfCluster& jobs) {
  Addresses workers = jobs.chief;
  workers.insert(workers.end(), jobs.workers.begin(), jobs.workers.end());
  std::string spec = ClusterSpec{jobs.ps, workers}.str();
  if (!jobs.evaluators.empty()) {
    spec += fmt::format(";evaluator={}", fmt::join(jobs.evaluators, ","));
  }
  return spec;
}

}  // namespace

std::vector<GivenFlag> flags_of_tf_config(std::string_view text) {
  const ConfigValue root = parse_json(text, "TF_CONFIG");
  if (root.kind != Kind::kTable)
    refuse_at(root, "it must be a table {\"cluster\": …, \"task\": …}");
  if (const ConfigValue* const sparse = root.find("sparseCluster")) {
    refuse_at(*sparse,
              "a cluster that changes its size (sparseCluster) is not supported yet: set "
              "enableDynamicWorker to false");
  }
  const ConfigValue* const cluster = root.find("cluster");
  const ConfigValue* const task = root.find("task");
  const TfCluster jobs = cluster != nullptr ? read_jobs(*cluster) : TfCluster{};
  const ConfigValue& place = cluster != nullptr ? *cluster : root;
  std::vector<GivenFlag> flags;
  const auto add = [&](const char* flag, const std::string& value, const ConfigValue& at) {
    flags.push_back({flag, {value}, place_of("TF_CONFIG", at.line, at.column)});
  };
  const bool alone = jobs.ps.empty() && jobs.chief.size() + jobs.workers.size() <= 1;
  if (!jobs.ps.empty() && jobs.chief.empty() && jobs.workers.empty()) {
    refuse_at(place, "there is no worker: add a chief, a master or a worker");
  }
  const std::string id = task != nullptr ? read_tf_task(*task, jobs) : "";
  if (task != nullptr && id.starts_with("evaluator")) {
    add("--task", id, *task);
    return flags;
  }
  if (alone) {
    if (task != nullptr) add("--one-task", "", place);
    return flags;
  }
  if (cluster != nullptr) add("--cluster", spec_of(jobs), *cluster);
  if (task != nullptr) add("--task", id, *task);
  return flags;
}

}  // namespace paceline
