#include "paceline/hooks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/print_text.h"
#include "paceline/error.h"
#include "summary/event_writer.h"
#include "train/graph_def.h"
#include "train/session_inside.h"
#include "train/step_details.h"

namespace paceline {
namespace {

using SummaryClock = std::chrono::steady_clock;
using Spent = std::vector<std::pair<std::string, double>>;

// Every 50th summary has histograms: reading all variables takes as long as some steps do.
constexpr std::int64_t kHistogramEvery = 50;

double total_of(const Spent& spent) {
  double total = 0;
  for (const auto& [activity, seconds] : spent) total += seconds;
  return total;
}

SummaryClock::time_point time_after(const Interval& every) {
  return SummaryClock::now() + std::chrono::duration_cast<SummaryClock::duration>(
                                   std::chrono::duration<double>(every.seconds));
}

}  // namespace

struct Summaries::State {
  std::string folder;
  Interval every;
  std::shared_ptr<StepDetails> details = {};  // null: none are wanted
  std::optional<EventWriter> writer = {};
  bool complained = false;
  std::int64_t written = 0;  // the number of summaries
  std::int64_t next_step = 0;
  SummaryClock::time_point next_time = {};
  std::int64_t seen_step = 0, next_details = 0;  // global steps
  std::size_t details_left = 1;                  // so many steps in a row are still to be shown
  SummaryClock::time_point next_details_time = {};
  // The state when summaries were last written.
  std::int64_t own_step = 0, examples = 0;
  Spent spent = {};
  Staleness stale = {};
  std::vector<StepResult> made = {};  // the last step of each training
  std::int64_t histograms_at = -1;    // the own step at which histograms were last written

  void open(Session& session);
  bool due(const StepResult& result) const;
  void plan_next(std::int64_t global_step);
  void note(const StepResult& result);
  void write(Session& session, const StepResult& result);
  void add_results(std::vector<SummaryValue>& values) const;
  void write_histograms(Session& session, const StepResult& result);
  void add(SummaryEvent event);
  void add_details(const StepResult& result);
  void plan_details(std::int64_t global_step);
  void add_staleness(Session& session, std::vector<SummaryValue>& values);
  void add_speed(Session& session, const StepResult& result, std::vector<SummaryValue>& values);
  /// Calls `part`. A full disk prints a line and does not end training.
  template <typename F>
  void guarded(F&& part);
};

template <typename F>
void Summaries::State::guarded(F&& part) {
  try {
    part();
  } catch (const Error& error) {
    if (!std::exchange(complained, true)) {
      print_text(stderr, fmt::format("warning: {}; training goes on without these summaries\n",
                                     error.what()));
    }
  }
}

void Summaries::State::open(Session& session) {
  const StepResult& last = session.last_step();
  const TaskId task{TaskId::Role::kWorker, session.cluster().task.index};
  const std::string of_task = folder + "/" + task.str();
  std::error_code unseen;  // a folder that may not be looked at cannot be written either
  const bool resumed = last.global_step > 0 && std::filesystem::exists(of_task, unseen);
  guarded([&] { writer.emplace(of_task, last.global_step); });
  // The graph is written only once, since TensorBoard warns of a second one.
  if (session.cluster().is_chief() && !resumed)
    add({.step = last.global_step, .graph = graph_def(SessionInside(session).graph())});
  own_step = last.step;
  examples = SessionInside(session).examples();
  spent = SessionInside(session).seconds_spent();
  stale = SessionInside(session).staleness();
  plan_next(last.global_step);
  seen_step = last.global_step;
  next_details = last.global_step + 1;
  if (details) details->ask();
}

bool Summaries::State::due(const StepResult& result) const {
  return every.steps > 0 ? result.global_step >= next_step : SummaryClock::now() >= next_time;
}

// Each of several workers sees only some of the global steps, so summaries are due from a step on.
void Summaries::State::plan_next(std::int64_t global_step) {
  if (every.steps > 0) next_step = (global_step / every.steps + 1) * every.steps;
  next_time = time_after(every);
}

// Adds the details of this step, and asks for those of the next step if they are due, since details
// are made while a step is computed. The next step is expected to count as many global steps as the
// last one did. With several trainings, as many steps in a row are shown, so that trainings which
// take turns are all shown.
void Summaries::State::add_details(const StepResult& result) {
  if (!details) return;
  const std::int64_t stride = result.global_step - std::exchange(seen_step, result.global_step);
  if (std::optional<std::vector<SummaryValue>> values = details->take()) {
    if (!values->empty()) add({.step = result.global_step, .values = std::move(*values)});
    if (--details_left > 0) return details->ask();
    plan_details(result.global_step);
  }
  const std::int64_t next = result.global_step + std::max<std::int64_t>(1, stride);
  const bool is_due =
      every.steps > 0 ? next >= next_details : SummaryClock::now() >= next_details_time;
  if (!is_due) return;
  details_left = std::max<std::size_t>(1, made.size());
  details->ask();
}

void Summaries::State::plan_details(std::int64_t global_step) {
  if (every.steps > 0) {
    // The step that is shown may be a little earlier than the intended one.
    const std::int64_t meant = std::max(global_step, next_details);
    next_details = (meant / every.steps + 1) * every.steps;
  }
  next_details_time = time_after(every);
}

void Summaries::State::add(SummaryEvent event) {
  if (!writer) return;
  guarded([&] { writer->add(std::move(event)); });
}

void Summaries::State::note(const StepResult& result) {
  const auto training = std::size_t(result.training);
  if (training >= made.size()) made.resize(training + 1);
  made[training] = result;
}

// Adds the results of each training that has made a step since the last summary.
void Summaries::State::add_results(std::vector<SummaryValue>& values) const {
  for (const StepResult& last : made) {
    if (last.step <= own_step) continue;
    const std::string of = last.training == 0 ? "" : fmt::format("/{}", last.training);
    values.push_back({"loss" + of, float(last.loss)});
    values.push_back({"learning_rate" + of, float(last.learning_rate)});
    if (last.global_norm) values.push_back({"global_norm" + of, float(*last.global_norm)});
  }
}

void Summaries::State::write(Session& session, const StepResult& result) {
  std::vector<SummaryValue> values;
  add_results(values);
  add_speed(session, result, values);
  add_staleness(session, values);
  if (SessionInside(session).options().summarise) {
    for (const auto& [tag, value] : SessionInside(session).options().summarise()) {
      values.push_back({tag, float(value)});
    }
  }
  add({.step = result.global_step, .values = std::move(values)});
  if (written++ % kHistogramEvery == 0) write_histograms(session, result);
  plan_next(result.global_step);
}

// Adds the speed and the shares of the time since the last summary, without evaluations.
void Summaries::State::add_speed(Session& session, const StepResult& result,
                                 std::vector<SummaryValue>& values) {
  const SessionInside inside(session);
  const std::int64_t made = inside.examples();
  const Spent now = inside.seconds_spent();
  const double seconds = total_of(now) - total_of(spent);
  if (seconds > 0) {
    values.push_back({"speed/steps_per_s", float(double(result.step - own_step) / seconds)});
    values.push_back({fmt::format("speed/{}_per_s", inside.options().unit),
                      float(double(made - examples) / seconds)});
    for (std::size_t i = 0; i < now.size(); ++i) {
      const double share = (now[i].second - spent[i].second) / seconds;
      values.push_back({"share/" + now[i].first, float(share)});
    }
  }
  own_step = result.step;
  examples = made;
  spent = now;
}

// Adds the staleness of the contributions since the last summary.
void Summaries::State::add_staleness(Session& session, std::vector<SummaryValue>& values) {
  const Staleness now = SessionInside(session).staleness();
  const Staleness since = {.contributions = now.contributions - stale.contributions,
                           .updates = now.updates - stale.updates};
  if (since.contributions > 0) values.push_back({"staleness", float(since.mean())});
  stale = now;
}

void Summaries::State::write_histograms(Session& session, const StepResult& result) {
  if (!session.cluster().is_chief() || std::exchange(histograms_at, result.step) == result.step)
    return;
  std::vector<SummaryValue> values;
  SessionInside(session).see_variables([&](const std::string& name, const Tensor& value) {
    if (value.dtype() != DType::kFloat32) return;
    values.push_back({"variables/" + name, Histogram::of(value.data<float>())});
  });
  add({.step = result.global_step, .values = std::move(values)});
}

Summaries::Summaries(std::string folder, Interval every, std::shared_ptr<StepDetails> details)
    : state_(std::make_unique<State>(
          State{.folder = std::move(folder), .every = every, .details = std::move(details)})) {}

Summaries::~Summaries() = default;
Summaries::Summaries(Summaries&&) noexcept = default;

void Summaries::begin(Session& session) {
  if (!state_->writer && !state_->complained) state_->open(session);
}

bool Summaries::after_step(Session& session, const StepResult& result) {
  state_->note(result);
  if (state_->due(result)) state_->write(session, result);
  state_->add_details(result);
  return true;
}

void Summaries::summarised(Session& session, const std::string& tag, double value) {
  state_->add({.step = session.last_step().global_step, .values = {{tag, float(value)}}});
}

void Summaries::end(Session& session) {
  const StepResult& last = session.last_step();
  if (last.step > state_->own_step) state_->write(session, last);
  state_->write_histograms(session, last);
}

}  // namespace paceline
