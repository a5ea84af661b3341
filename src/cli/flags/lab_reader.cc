#include "cli/flags/lab_reader.h"

#include <fmt/format.h>

#include "cli/flags/flag_checks.h"
#include "net/link_kind.h"

namespace paceline {
namespace {

constexpr int kMostHosts = 1000;
constexpr double kLeastGbps = 1e-4;

void check_cluster(const FlagValues& values, const Cluster& cluster) {
  for (const char* flag : {"--lab-hosts", "--lab-place", "--lab-gbps", "--lab-delay-ms"}) {
    if (!values.given(flag)) continue;
    check_apart(values, flag, "--hosts", "both say which hosts there are");
    if (cluster.process != Cluster::Process::kLauncher || cluster.existing_servers) {
      refuse_flags(
          fmt::format("{} needs a cluster whose tasks all start here: add --ps and "
                      "--workers",
                      flag));
    }
    if (link_kind(cluster.links.kind).needs_one_host()) {
      refuse_flag("--link", cluster.links.kind, "emulated hosts share no memory: auto or tcp");
    }
    if (!values.given("--lab-hosts") && !values.given("--lab-place")) {
      refuse_flags(fmt::format("{} needs --lab-hosts N", flag));
    }
  }
}

std::string counted_tasks(std::size_t ps, std::size_t workers) {
  return fmt::format("{} ps and {} worker{}", ps, workers, workers == 1 ? "" : "s");
}

LabOptions read_place(const FlagValues& values, const Cluster& cluster) {
  const std::string text = values.text("--lab-place");
  LabOptions lab = read_flag("--lab-place", [&] { return parse_lab_place(text); });
  const auto ps = std::size_t(cluster.launch.ps), workers = std::size_t(cluster.launch.workers);
  if (lab.workers.empty()) {
    refuse_flag("--lab-place", text, "has no worker: a host with one is 1, as in ps/1");
  }
  if (lab.ps.size() != ps || lab.workers.size() != workers) {
    refuse_flag("--lab-place", text,
                fmt::format("has {}, but the cluster has {}: add --ps {} --workers {}",
                            counted_tasks(lab.ps.size(), lab.workers.size()),
                            counted_tasks(ps, workers), lab.ps.size(), lab.workers.size()));
  }
  const auto hosts = values.whole_number("--lab-hosts", 1, kMostHosts);
  if (hosts && *hosts < lab.hosts) {
    refuse_flag("--lab-hosts", std::to_string(*hosts),
                fmt::format("--lab-place {} has {}", text, lab.hosts));
  }
  lab.hosts = int(hosts.value_or(lab.hosts));
  return lab;
}

}  // namespace

LabOptions read_lab(const FlagValues& values, const Cluster& cluster) {
  if (cluster.launch.launched || cluster.process == Cluster::Process::kEvaluator) return {};
  check_cluster(values, cluster);
  LabOptions lab;
  if (values.given("--lab-place")) {
    lab = read_place(values, cluster);
  } else if (const auto hosts = values.whole_number("--lab-hosts", 1, kMostHosts)) {
    lab.hosts = int(*hosts);
    spread_tasks(lab, cluster.launch.ps, cluster.launch.workers);
  }
  lab.gbps = values.positive_number("--lab-gbps").value_or(1);
  if (lab.gbps < kLeastGbps) {
    refuse_flag("--lab-gbps", values.text("--lab-gbps"), "must be at least 0.0001");
  }
  lab.delay_ms = values.number_from_zero("--lab-delay-ms").value_or(0);
  return lab;
}

void set_places(const LabOptions& lab, PredictionOptions& prediction) {
  if (!lab.asked()) return;
  if (prediction.any_ps || prediction.any_workers) {
    prediction.open_hosts = lab.hosts;
    return;
  }
  prediction.ps_hosts = lab.ps;
  prediction.worker_hosts = lab.workers;
}

}  // namespace paceline
