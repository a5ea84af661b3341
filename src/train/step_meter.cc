#include "train/step_meter.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/quantile.h"

namespace paceline {
namespace {

// The buckets of StepTimes.
constexpr double kGrowth = 1.005;
constexpr double kFirstMs = 1e-3;

double seconds_of(Duration duration) { return double(duration.count()) * 1e-9; }

}  // namespace

void StepTimes::add(Duration step) {
  const double ms = double(step.count()) * 1e-6;
  const double bucket = ms > kFirstMs ? std::log(ms / kFirstMs) / std::log(kGrowth) : 0;
  ++counts_[std::size_t(std::min(bucket, double(kBuckets - 1)))];
  ++count_;
}

std::optional<double> StepTimes::quantile_ms(double share) const {
  if (count_ == 0) return std::nullopt;
  // The result is the middle of the bucket.
  return kFirstMs * std::pow(kGrowth, double(bucket_of_quantile(counts_, count_, share)) + 0.5);
}

StepMeter::StepMeter(StepAccount& account, std::string unit)
    : account_(account), unit_(std::move(unit)) {
  account_.reset();
}

void StepMeter::start() {
  const Spent spent = spent_now();
  for (std::size_t i = 0; i < spent.size(); ++i) spent_before_[i] += spent[i];
  account_.reset();
  started_ = account_.clock().now();
  excluded_ = waited_before_ = hidden_ = Duration(0);
  running_ = true;
}

void StepMeter::stop() {
  running_ = false;
  stopped_ = true;
}

void StepMeter::add_step(Duration step, Duration transfer, std::int64_t examples) {
  ++steps_;
  if (!running_) return;
  examples_ += examples;
  times_.add(step);
  const Duration waited = waited_before_;
  waited_before_ = this->waited();
  hidden_ += std::max(Duration(0), transfer - (waited_before_ - waited));
  measure();
}

void StepMeter::measure() { spent_ = spent_now(); }

StepMeter::Spent StepMeter::spent_now() {
  // Brings the account up to this moment.
  account_.change_to(account_.change_to(Activity::kOther));
  Spent spent;
  for (int i = 0; i < kActivityCount; ++i) spent[std::size_t(i)] = account_.spent(Activity(i));
  spent[std::size_t(Activity::kOther)] -= excluded_;
  return spent;
}

std::vector<std::pair<std::string, double>> StepMeter::seconds_spent() {
  const Spent spent = spent_now();
  std::vector<std::pair<std::string, double>> seconds;
  for (std::size_t i = 0; i < spent.size(); ++i) {
    seconds.emplace_back(name_of(Activity(i)), seconds_of(spent[i] + spent_before_[i]));
  }
  return seconds;
}

TaskReport StepMeter::report(const std::string& task) const {
  TaskReport report;
  report.task = task;
  report.steps = steps_;
  report.unit = unit_;
  const double seconds = seconds_of(std::accumulate(spent_.begin(), spent_.end(), Duration(0)));
  if (times_.count() == 0 || seconds <= 0) return report;
  report.seconds = seconds;
  report.steps_per_s = double(times_.count()) / seconds;
  report.examples_per_s = double(examples_) / seconds;
  report.step_ms_p50 = times_.quantile_ms(0.5);
  report.step_ms_p99 = times_.quantile_ms(0.99);
  report.step_ms_max = times_.quantile_ms(1);
  for (int i = 0; i < kActivityCount; ++i) {
    report.share.emplace_back(name_of(Activity(i)), seconds_of(spent_[std::size_t(i)]) / seconds);
  }
  report.hidden_ms = seconds_of(hidden_) * 1e3 / double(times_.count());
  return report;
}

}  // namespace paceline
