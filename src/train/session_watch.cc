// The part of a session that is seen while it runs: what this task says of itself, and on the chief
// what holds the job back, and the live page.
#include <fmt/format.h>

#include <algorithm>

#include "base/address.h"
#include "dashboard/access_token.h"
#include "explain/cause_watch.h"
#include "run/log.h"
#include "run/report/task_progress.h"
#include "run/usage_errors.h"
#include "train/session_impl.h"

namespace paceline {
namespace {

constexpr Duration kTellEvery = std::chrono::seconds(1);
// The chief looks at so large a job less often, that it takes no time from its steps.
constexpr Duration kPerTask = std::chrono::milliseconds(20);

std::vector<std::string> names_of_tasks(const ClusterSpec& spec) {
  std::vector<std::string> names = {"worker:0"};
  for (std::size_t i = 1; i < spec.workers.size(); ++i)
    names.push_back(fmt::format("worker:{}", i));
  for (std::size_t i = 0; i < spec.ps.size(); ++i) names.push_back(fmt::format("ps:{}", i));
  return names;
}

}  // namespace

// The chief looks at the whole job, for the line that says what holds it back and for the page.
void Session::Impl::watch_run() {
  const bool serves = !run_options.dashboard.empty();
  if (!cluster.is_chief() || trainings.empty() || (!serves && run_options.log == nullptr)) return;
  RunWatch::Options how;
  how.about = {.out = run_options.out,
               .steps = run_options.steps,
               .seconds = run_options.seconds,
               .tasks = names_of_tasks(cluster.spec)};
  how.own_task = cluster.task.str();
  how.clock = &clock;
  how.board = &progress;
  how.every = std::max(kTellEvery, kPerTask * std::int64_t(how.about.tasks.size()));
  if (serves) serve_dashboard(how.about);
  watch = std::make_unique<RunWatch>(
      how, [this, own = how.own_task, causes = CauseWatch()](LiveRun& run, TimePoint now) mutable {
        if (dashboard) dashboard->renew(run, now);
        // Its last step is over, or the next one has not come.
        if (run_options.log == nullptr || run.tasks().at(own).moved != now) return;
        Report whole = run.report();
        const std::string line = causes.look(whole, run.seconds(now));
        keep_heard(std::move(whole));
        if (!line.empty()) console.print(line);
      });
}

void Session::Impl::serve_dashboard(const RunAbout& about) {
  Dashboard::Options how;
  how.at = parse_address(run_options.dashboard);
  if (!run_options.dashboard_token.empty()) {
    how.token = read_flag("--dashboard-token",
                          [&] { return read_access_token(run_options.dashboard_token); });
  }
  how.certificate = run_options.dashboard_certificate;
  how.key = run_options.dashboard_key;
  if (!run_options.out.empty()) how.address_file = run_options.out + "/dashboard";
  dashboard = std::make_unique<Dashboard>(how, LiveRun(about, clock.now()), clock.now());
  console.print("Dashboard: " + dashboard->url());
  if (is_loopback(run_options.dashboard)) return;
  if (how.token.empty())
    console.print(
        "The dashboard asks nobody who they are; use it only in a network that you trust.");
  if (!dashboard->encrypts())
    console.print(
        "The dashboard is not encrypted: whoever sees a request on its way sees its token.");
}

void Session::Impl::keep_heard(Report whole) {
  const std::lock_guard lock(hearing);
  heard = std::move(whole);
}

Report Session::Impl::report_of_job() const {
  Report whole = report;
  const std::lock_guard lock(hearing);
  for (const TaskReport& task : heard.tasks) {
    if (task.task != cluster.task.str()) whole.tasks.push_back(task);
  }
  return whole;
}

void Session::Impl::let_watch_ask(bool may) {
  if (!watch) return;
  std::function<void()> ask;
  if (may) ask = [this] { job->control().ask_progress(); };
  watch->ask_with(std::move(ask));
}

void Session::Impl::tell_progress(bool anyway) {
  const bool watched = watch != nullptr || progress.wanted();
  if (!watched || (!anyway && clock.now() - told_progress_ < kTellEvery)) return;
  told_progress_ = clock.now();
  TaskProgress now;
  now.at = std::chrono::duration<double>(told_progress_.time_since_epoch()).count();
  now.report = report;
  now.report.tasks = {measured_task()};
  saving->add_to(now.report);
  if (loop->steps_made() > 0) add_losses(now.report);
  if (options.summarise) {
    for (const auto& [tag, value] : options.summarise()) summarised[tag] = value;
  }
  now.numbers.assign(summarised.begin(), summarised.end());
  if (run_options.log != nullptr) now.lines = run_options.log->remembered();
  progress.tell(now.to_json());
}

}  // namespace paceline
