// What a session shows while it runs: to its observers, and to the tasks that ask how far it is.
#include <chrono>

#include "run/log.h"
#include "run/report/task_progress.h"
#include "train/session_impl.h"

namespace paceline {
namespace {

constexpr Duration kTellEvery = std::chrono::seconds(1);

}  // namespace

class Session::Impl::Observed : public RunningSession {
 public:
  explicit Observed(Impl& impl) : impl_(impl) {}

  PlannedSession made_of() const override {
    return {impl_.trainings, impl_.graphs, impl_.cluster, impl_.run_options, impl_.options};
  }
  const StepResult& last_step() const override { return impl_.last_step(); }
  void print(const std::string& line) override { impl_.console.print(line); }
  void add_to_report(const std::string& section, const std::string& key,
                     std::optional<double> value) override {
    impl_.report.set(section, key, value);
  }
  std::string report_text() const override { return impl_.report_so_far().to_json(); }
  void ask_others() override { impl_.job->control().ask_progress(); }
  std::vector<TaskWords> hear() override {
    std::vector<TaskWords> heard;
    for (ProgressBoard::Heard& each : impl_.progress.heard_after(heard_)) {
      heard.push_back({std::move(each.task), std::move(each.text)});
    }
    heard.push_back({impl_.cluster.task.str(), impl_.progress.told()});
    return heard;
  }
  Report& report() override { return impl_.report; }
  const Plan& plan(int training) const override {
    return *impl_.trained.at(std::size_t(training)).plans[0].plan;
  }
  std::span<const VariableSpec> variables() const override {
    return impl_.job->store().variables();
  }
  int threads() const override { return impl_.pool().threads(); }

 private:
  Impl& impl_;
  std::int64_t heard_ = 0;  // of the answers of other tasks
};

void Session::Impl::show_to_observers() {
  observers.see([this] { return std::make_unique<Observed>(*this); });
}

Report Session::Impl::report_so_far() const {
  Report now = report;
  if (meter != nullptr) now.tasks = {task_report()};
  if (saving != nullptr) saving->add_to(now);
  if (loop != nullptr && loop->steps_made() > 0) add_losses(now);
  return now;
}

void Session::Impl::tell_progress(bool anyway) {
  const bool watched = is_watched_ || progress.wanted();
  if (!watched || (!anyway && clock.now() - told_progress_ < kTellEvery)) return;
  told_progress_ = clock.now();
  TaskProgress now;
  now.at = std::chrono::duration<double>(told_progress_.time_since_epoch()).count();
  now.report = report_so_far();
  if (options.summarise) {
    for (const auto& [tag, value] : options.summarise()) summarised[tag] = value;
  }
  now.numbers.assign(summarised.begin(), summarised.end());
  if (run_options.log != nullptr) now.lines = run_options.log->remembered();
  progress.tell(now.to_json());
  if (is_watched_) observers.tell(&SessionObserver::progressed);
}

}  // namespace paceline
