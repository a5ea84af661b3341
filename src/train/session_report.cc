// The output of a session: lines, the report file, the timeline.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "base/failure_text.h"
#include "base/grouped_digits.h"
#include "base/print_text.h"
#include "base/printed.h"
#include "net/link_kind.h"
#include "params/strategy/strategies.h"
#include "run/network_rate.h"
#include "run/report/bad_records_in_words.h"
#include "run/report/run_folder.h"
#include "run/report/staleness_in_words.h"
#include "run/task_devices.h"
#include "trace/task_timeline.h"
#include "train/session_impl.h"

namespace paceline {
namespace {

std::string shares_text(const TaskReport& task) {
  std::string text;
  for (const auto& [name, share] : task.share) {
    text += fmt::format(" {} {:.1f}%", name, 100 * share);
  }
  return text;
}

// The ops whose kernels took most of the time of all kernels.
std::vector<KernelReport> top_kernels(const KernelMeter& meter) {
  constexpr std::size_t kMost = 5;
  const std::vector<KernelMeter::OpTime> times = meter.times();
  Duration all{0};
  for (const KernelMeter::OpTime& each : times) all += each.time;
  std::vector<KernelReport> top;
  for (std::size_t i = 0; i < std::min(kMost, times.size()) && all > Duration(0); ++i) {
    top.push_back({.op = times[i].op,
                   .per_step = double(times[i].runs) / double(meter.steps()),
                   .ms = double(times[i].time.count()) * 1e-6 / double(meter.steps()),
                   .share = double(times[i].time.count()) / double(all.count())});
  }
  return top;
}

// "3,000 global steps (1,500 here)"
std::string steps_text(const Cluster& cluster, std::int64_t global_step, const TaskReport& task) {
  std::string text = counted(global_step, "global step");
  if (cluster.distributed()) text += fmt::format(" ({} here)", grouped_digits(task.steps));
  return text;
}

}  // namespace

void Session::summarise(const std::string& tag, double value) {
  if (!started()) return;
  impl_->summarised[tag] = value;
  for (const auto& hook : impl_->hooks) hook->summarised(*this, tag, value);
  impl_->guarded([&] { impl_->excluded([&] { impl_->note_number(tag, value); }); });
}

std::vector<std::pair<std::string, double>> Session::seconds_spent() {
  if (!started()) return {};
  return impl_->meter->seconds_spent();
}

Staleness Session::staleness() const {
  return started() ? impl_->job->store().staleness() : Staleness();
}

void Session::report(const std::string& section, const std::string& key,
                     std::optional<double> value) {
  impl_->report.set(section, key, value);
}

void Session::print(const std::string& line) {
  if (started()) impl_->console.print(line);
}

void Session::print_progress(const std::string& line) {
  if (started()) impl_->console.print_progress(line);
}

void Session::Impl::fail(const std::string& message) {
  if (report.error.empty()) report.error = message;
  if (job != nullptr) job->fail();
}

void Session::Impl::start_use() {
  if (account_before_) return;
  account_before_ = job->store().account();
  links_before_ = job->store().links();
  copies_before_ = device->copy_time();
  use_.start();
}

// Of this task's host, each way; nothing where the system does not say. Tasks of one machine, on
// hosts that are not emulated, have no network between them.
std::optional<double> Session::Impl::network_bytes_per_s() const {
  double gbps = run_options.link_gbps;
  if (gbps == 0 && !is_on_one_machine(cluster)) gbps = network_gbps();
  if (gbps == 0) return std::nullopt;
  return gbps * kPayloadOfGigabit;
}

void Session::Impl::add_links(TaskReport& task, double seconds) const {
  const std::vector<StoreLink> links = job->store().links();
  for (const StoreLink& now : links) {
    const auto before = std::ranges::find(links_before_, now.to, &StoreLink::to);
    const bool is_new = before == links_before_.end();
    const double sent = double(now.bytes_sent - (is_new ? 0 : before->bytes_sent));
    const double received = double(now.bytes_received - (is_new ? 0 : before->bytes_received));
    LinkReport& link = task.links.emplace_back();
    link.to = now.to;
    link.kind = now.kind;
    link.encrypted = now.encrypted;
    if (now.round_trip) link.round_trip_us = double(now.round_trip->count()) * 1e-3;
    if (task.steps > 0) link.step_sent = sent / double(task.steps);
    if (task.steps > 0) link.step_received = received / double(task.steps);
    if (seconds > 0) link.sent = sent / seconds;
    if (seconds > 0) link.received = received / seconds;
    if (link_traits(now.kind).on_network) link.most = network_bytes_per_s();
  }
}

TaskReport Session::Impl::task_report() const {
  return task_at_end_ ? *task_at_end_ : measured_task();
}

TaskReport Session::Impl::measured_task() const {
  TaskReport task = meter->report(cluster.task.str());
  if (!account_before_) return task;
  if (const Staleness stale = job->store().staleness(); stale.contributions > 0) {
    task.staleness_mean = stale.mean();
    task.staleness_p95 = double(stale.p95);
  }
  if (strategy_kind(cluster).ps_closes_rounds(Strategy())) {
    task.dropped = job->store().staleness().dropped;
  }
  if (cluster.on_nan == OnNan::kSkip) task.skipped = job->store().skipped();
  const StoreAccount now = job->store().account();
  const std::optional<MachineUse> use = use_.measure();
  task.kernels = top_kernels(kernel_meter);
  if (options.input) task.input = options.input();
  add_links(task, use ? use->seconds : 0);
  task.use = task_use(use, now.bytes_sent - account_before_->bytes_sent,
                      now.bytes_received - account_before_->bytes_received);
  const double copied_ms = double((device->copy_time() - copies_before_).count()) * 1e-6;
  if (task.steps > 0 && copied_ms > 0) task.copies_ms = copied_ms / double(task.steps);
  if (task.steps > 0) {
    task.step_sent = double(now.bytes_sent - account_before_->bytes_sent) / double(task.steps);
    task.step_received =
        double(now.bytes_received - account_before_->bytes_received) / double(task.steps);
  }
  for (const auto& [name, share] : task.share) {
    // Where rules are applied in this process, they are work of the device too.
    if (name == "compute" || name == "apply") {
      task.use.device_busy = task.use.device_busy.value_or(0) + share;
    }
  }
  return task;
}

void Session::Impl::add_results() {
  if (meter != nullptr) report.tasks = {task_report()};
  if (saving != nullptr) saving->add_to(report);
  if (loop == nullptr || loop->steps_made() == 0) return;
  add_losses(report);
}

void Session::Impl::add_losses(Report& to) const {
  to.global_step = loop->last().global_step;
  to.first_loss = loop->first_loss();
  to.last_loss = loop->last_loss();
  to.loss_begin = loop->losses().begin();
  to.loss_end = loop->losses().end();
}

void Session::Impl::write_report() {
  add_results();
  if (run_options.seconds_counted != nullptr && limit != nullptr) {
    *run_options.seconds_counted = limit->seconds_counted();
  }
  try {
    write_reports(cluster, run_options, report);
  } catch (const std::exception& error) {
    failed_end(failure_text(error));
  }
}

// A destructor has nobody to throw to.
void Session::Impl::failed_end(const std::string& message) const {
  if (run_options.on_failed_end) return run_options.on_failed_end(message);
  print_text(stderr, fmt::format("paceline: error: {}\n", message));
}

void Session::Impl::write_timeline() {
  if (timeline == nullptr || is_left_as_it_is(run_options, report, run_options.timeline)) return;
  try {
    paceline::write_timeline(run_options.timeline, *timeline, cluster.task.str());
  } catch (const std::exception& error) {
    failed_end(failure_text(error));
  }
}

// Saves at the end, for a program whose training ends with its data.
void Session::Impl::end_well() {
  try {
    if (loop != nullptr && loop->steps_made() > 0) saving->save_at_end();
    task_at_end_ = measured_task();  // without the memory that observers take to measure more
    report.tasks = {*task_at_end_};
    observers.tell(&SessionObserver::ended);
    print_summary();
    add_results();
    observers.tell(&SessionObserver::summed_up);
  } catch (const std::exception& error) {
    fail(error.what());
    return failed_end(error.what());
  }
  if (const std::string none = no_best_end(); !none.empty()) {
    print_text(stderr, fmt::format("paceline: {}\n", none));
  }
  if (const std::string stale = stale_end(report); !stale.empty()) console.print(stale);
  if (const std::string late = dropped_end(report); !late.empty()) console.print(late);
  if (const std::string nans = skipped_end(report); !nans.empty()) console.print(nans);
}

// An evaluator of its own may still be at work.
std::string Session::Impl::no_best_end() const {
  const std::optional<KeepBest>& by = run_options.keep_best;
  if (cluster.evaluator || !saving->marked_none() || summarised.contains(by->name)) return "";
  std::vector<std::string> names;
  for (const auto& [name, value] : summarised) names.push_back(name);
  return fmt::format(
      "--keep-best {0}: no checkpoint was marked as the best, since the program gave "
      "no number {0}; it gave {1}",
      by->name, names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
}

void Session::Impl::print_summary() const {
  const TaskReport task = task_report();
  if (task.steps == 0) return;
  if (loop != nullptr) {
    if (!cluster.launched) console.print(steps_text(cluster, loop->last().global_step, task));
    console.print(fmt::format("loss {:.6g} -> {:.6g}", printed(loop->first_loss()),
                              printed(loop->last_loss())));
  }
  if (!task.steps_per_s) {
    console.print(fmt::format("no step was timed: the first {} never are", kUntimedSteps));
    return;
  }
  const std::string examples =
      task.unit == "steps" ? "" : fmt::format(", {:.0f} {}/s", *task.examples_per_s, task.unit);
  console.print(fmt::format("{:.2f} steps/s{}:{}", *task.steps_per_s, examples, shares_text(task)));
  console.print("used " + task.use.text());
  if (const std::string bad = bad_records_in_words(task); !bad.empty()) console.print(bad);
}

}  // namespace paceline
