// The part of a session that shows it while it runs: what this task says of itself, and on the
// chief the live page.
#include <fmt/format.h>

#include "cluster/log.h"
#include "cluster/report/task_progress.h"
#include "net/address.h"
#include "train/session_impl.h"

namespace paceline {
namespace {

constexpr Duration kTellEvery = std::chrono::seconds(1);

std::vector<std::string> names_of_tasks(const ClusterSpec& spec) {
  std::vector<std::string> names = {"worker:0"};
  for (std::size_t i = 1; i < spec.workers.size(); ++i)
    names.push_back(fmt::format("worker:{}", i));
  for (std::size_t i = 0; i < spec.ps.size(); ++i) names.push_back(fmt::format("ps:{}", i));
  return names;
}

}  // namespace

void Session::Impl::serve_dashboard() {
  if (run_options.dashboard.empty() || !cluster.is_chief() || trainings.empty()) return;
  Dashboard::Options how;
  how.at = parse_address(run_options.dashboard);
  how.about = {.out = run_options.out,
               .steps = run_options.steps,
               .seconds = run_options.seconds,
               .tasks = names_of_tasks(cluster.spec)};
  how.own_task = cluster.task.str();
  how.clock = &clock;
  how.board = &progress;
  if (!run_options.out.empty()) how.address_file = run_options.out + "/dashboard";
  dashboard = std::make_unique<Dashboard>(how);
  console.print("Dashboard: " + dashboard->url());
  if (!is_loopback(run_options.dashboard)) {
    console.print(
        "The dashboard is not encrypted, and asks nobody who they are; use it only in a network "
        "that you trust.");
  }
}

void Session::Impl::let_dashboard_ask(bool may) {
  if (!dashboard) return;
  std::function<void()> ask;
  if (may) ask = [this] { job->control().ask_progress(); };
  dashboard->ask_with(std::move(ask));
}

void Session::Impl::tell_progress(bool anyway) {
  const bool watched = dashboard != nullptr || progress.wanted();
  if (!watched || (!anyway && clock.now() - told_progress_ < kTellEvery)) return;
  told_progress_ = clock.now();
  TaskProgress now;
  now.at = std::chrono::duration<double>(told_progress_.time_since_epoch()).count();
  now.report = report;
  now.report.tasks = {measured_task()};
  if (loop->steps_made() > 0) {
    now.report.global_step = loop->last().global_step;
    now.report.first_loss = loop->first_loss();
    now.report.last_loss = loop->last_loss();
  }
  if (run_options.log != nullptr) now.lines = run_options.log->remembered();
  progress.tell(now.to_json());
}

}  // namespace paceline
