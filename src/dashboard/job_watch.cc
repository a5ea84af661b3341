#include "paceline/dashboard.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/address.h"
#include "base/real_clock.h"
#include "dashboard/access_token.h"
#include "dashboard/dashboard.h"
#include "dashboard/run_watch.h"
#include "explain/cause_watch.h"
#include "explain/explain.h"
#include "paceline/observer.h"
#include "run/report/expected_in_words.h"
#include "run/usage_errors.h"

namespace paceline {
namespace {

constexpr Duration kLookEvery = std::chrono::seconds(1);
// The interval grows by this for each task, so that watching a large job costs the chief's steps no
// time.
constexpr Duration kPerTask = std::chrono::milliseconds(20);

std::vector<std::string> names_of_tasks(const ClusterSpec& spec) {
  std::vector<std::string> names = {"worker:0"};
  for (std::size_t i = 1; i < spec.workers.size(); ++i)
    names.push_back(fmt::format("worker:{}", i));
  for (std::size_t i = 0; i < spec.ps.size(); ++i) names.push_back(fmt::format("ps:{}", i));
  return names;
}

RunAbout about_run(const PlannedSession& session) {
  return {.out = session.run.out,
          .steps = session.run.steps,
          .seconds = session.run.seconds,
          .tasks = names_of_tasks(session.cluster.spec)};
}

/// The chief's view of the whole job, for the line that says what holds it back, and for the page.
class JobWatch : public SessionObserver {
 public:
  explicit JobWatch(DashboardOptions options) : options_(std::move(options)) {}

  bool planned(const PlannedSession& session) override {
    own_task_ = session.cluster.task.str();
    looks_ = session.cluster.is_chief() && !session.trainings.empty();
    return true;
  }

  void joining(RunningSession& session) override {
    if (!looks_) return;
    RunWatch::Options how;
    how.about = about_run(session.made_of());
    how.clock = &kRealClock;
    how.hear = [&session] { return session.hear(); };
    how.every = std::max(kLookEvery, kPerTask * std::int64_t(how.about.tasks.size()));
    if (!options_.at.empty()) serve(session, how.about);
    watch_ = std::make_unique<RunWatch>(
        how, [this, &session](LiveRun& run, TimePoint now) { look(session, run, now); });
  }

  void joined(RunningSession& session) override {
    if (watch_ != nullptr) watch_->ask_with([&session] { session.ask_others(); });
  }

  bool wants_progress() const override { return watch_ != nullptr; }

  void leaving(RunningSession&) override {
    if (watch_ != nullptr) watch_->ask_with({});
  }

  // Prints the last lines of a run. If a launcher has started the tasks, the launcher prints them
  // instead.
  void summed_up(RunningSession& session) override {
    const Cluster& cluster = session.made_of().cluster;
    if (cluster.launch.launched) return;
    const Report whole = with_others(session.report());
    const auto timed = std::ranges::count_if(
        whole.tasks, [](const TaskReport& task) { return task.is_worker() && task.steps_per_s; });
    const std::string beside = timed == cluster.workers() ? expected_in_words(whole) : "";
    for (const std::string& line : {beside, explanation(whole)}) {
      if (!line.empty()) session.print(line);
    }
  }

 private:
  void serve(RunningSession& session, const RunAbout& about) {
    Dashboard::Options how;
    how.at = parse_address(options_.at);
    if (!options_.token.empty()) {
      how.token = read_flag("--dashboard-token", [&] { return read_access_token(options_.token); });
    }
    how.certificate = options_.certificate;
    how.key = options_.key;
    if (!about.out.empty()) how.address_file = about.out + "/dashboard";
    const TimePoint now = kRealClock.now();
    page_ = std::make_unique<Dashboard>(how, LiveRun(about, now), now);
    session.print("Dashboard: " + page_->url());
    if (is_loopback(options_.at)) return;
    if (how.token.empty())
      session.print(
          "The dashboard asks nobody who they are; use it only in a network that you trust.");
    if (!page_->encrypts())
      session.print(
          "The dashboard is not encrypted: whoever sees a request on its way sees its token.");
  }

  // Called by the watch's thread.
  void look(RunningSession& session, LiveRun& run, TimePoint now) {
    if (page_ != nullptr) page_->renew(run, now);
    // Looks for a cause only when this task has just made a step. Otherwise it has made its last
    // step, or its present step has not ended yet.
    if (run.tasks().at(own_task_).moved != now) return;
    Report whole = run.report();
    const std::string line = causes_.look(whole, run.seconds(now));
    {
      const std::lock_guard lock(hearing_);
      heard_ = std::move(whole);
    }
    if (!line.empty()) session.print(line);
  }

  /// Returns this task's report together with the latest reports that it got from the others.
  Report with_others(Report whole) const {
    const std::lock_guard lock(hearing_);
    for (const TaskReport& task : heard_.tasks) {
      if (task.task != own_task_) whole.tasks.push_back(task);
    }
    return whole;
  }

  const DashboardOptions options_;
  std::string own_task_;
  bool looks_ = false;  // this task watches the job while it runs
  CauseWatch causes_;   // used by the watch's thread alone
  mutable std::mutex hearing_;
  // The report of the whole job when the watch last looked for a cause.
  Report heard_;
  std::unique_ptr<Dashboard> page_;
  std::unique_ptr<RunWatch> watch_;
};

}  // namespace

MakeObserver watch_job(const DashboardOptions& dashboard) {
  return [dashboard](const PlannedSession&) { return std::make_unique<JobWatch>(dashboard); };
}

}  // namespace paceline
