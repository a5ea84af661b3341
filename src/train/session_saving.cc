#include "train/session_saving.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/print_text.h"
#include "base/printed.h"
#include "paceline/error.h"
#include "params/strategy/strategies.h"
#include "run/report/run_folder.h"

namespace paceline {
namespace {

constexpr std::string_view kTower = "tower";

// Returns the prefix of the names that a tower's local variables of a graph have in a checkpoint.
std::string saved_prefix(std::size_t graph, std::size_t trained_graphs, std::size_t tower) {
  const std::string of_tower = tower == 0 ? "" : fmt::format("{}{}/", kTower, tower);
  if (graph == 0) return of_tower + "train/";
  return fmt::format("{}{}{}/", of_tower, graph < trained_graphs ? "train" : "shared", graph);
}
// The time for which the chief waits at its end for other workers that may still be in a step.
constexpr Duration kWaitForLastSteps = std::chrono::seconds(10);
// The time within which workers of an all-reduce that are stopped together agree on the one that
// saves.
constexpr Duration kWaitForInterrupted = std::chrono::milliseconds(500);
// The interval between two reads of a folder, which may be on a disk that several hosts share.
constexpr std::chrono::seconds kLookForReportsEvery{2};

std::optional<BestBy> best_by(const RunOptions& run) {
  if (!run.keep_best) return std::nullopt;
  return BestBy{run.keep_best->name, run.keep_best->largest};
}

}  // namespace

SessionSaving::SessionSaving(Parts parts)
    : parts_(std::move(parts)),
      due_(parts_.run.save_every, parts_.clock.now()),
      reports_due_(kLookForReportsEvery, parts_.clock.now()) {
  if (parts_.loop == nullptr) return;
  const std::int64_t global_step = parts_.loop->last().global_step;
  due_.begin(global_step, parts_.clock.now());
  for (std::size_t graph = 0; graph < parts_.trained_graphs; ++graph) restore_locals(graph);
  say_other_towers();
  if (!parts_.run.out.empty() && parts_.cluster.is_chief()) make_saver(global_step);
}

bool SessionSaving::saves() const {
  return !parts_.run.out.empty() &&
         (parts_.cluster.is_chief() || parts_.job.control().takes_over_saving());
}

void SessionSaving::make_saver(std::int64_t global_step) {
  saver_ = std::make_unique<Saver>(Saver::Parts{.store = parts_.job.store(),
                                                .folder = checkpoints_folder(parts_.run),
                                                .keep = parts_.run.keep,
                                                .keep_best = best_by(parts_.run),
                                                .global_step = global_step,
                                                .notes = parts_.notes,
                                                .data = parts_.data,
                                                .modules = parts_.modules,
                                                .settings = parts_.run.settings,
                                                .say = parts_.say,
                                                .complain = [](const std::string& line) {
                                                  print_text(stderr,
                                                             fmt::format("paceline: {}\n", line));
                                                }});
}

// A graph that is not trained is evaluated on the first device alone.
void SessionSaving::restore_locals(std::size_t graph) {
  if (!parts_.job.restored()) return;
  const std::size_t towers = graph < parts_.trained_graphs ? parts_.contexts.size() : 1;
  for (std::size_t tower = 0; tower < towers; ++tower) restore_locals(graph, tower);
}

void SessionSaving::restore_locals(std::size_t graph, std::size_t tower) {
  const std::string prefix = saved_prefix(graph, parts_.trained_graphs, tower);
  for (const auto& [name, tensor] : parts_.job.restored()->local) {
    if (!name.starts_with(prefix)) continue;
    LocalMemory& locals = parts_.contexts[tower]->plans().locals(*parts_.graphs[graph]);
    const std::string_view local = std::string_view(name).substr(prefix.size());
    const bool fits = locals.contains(local) && locals.view(local).dtype == tensor.dtype() &&
                      locals.view(local).shape == tensor.shape();
    if (!fits && locals.contains(local)) {
      parts_.say(
          fmt::format("local variable {} begins anew: it is {} {} in the checkpoint and {} {} here",
                      local, name_of(tensor.dtype()), tensor.shape().str(),
                      name_of(locals.view(local).dtype), locals.view(local).shape.str()));
    } else if (!fits && graph < parts_.trained_graphs) {
      throw Error(ErrorCode::kFailedPrecondition,
                  fmt::format("[session] local variable {} {} {} of the checkpoint is not the "
                              "model's",
                              local, name_of(tensor.dtype()), tensor.shape().str()));
    }
    if (fits) locals.write(local, tensor);
  }
}

void SessionSaving::say_other_towers() const {
  if (!parts_.job.restored() || parts_.job.restored()->local.empty()) return;
  const auto is_saved = [&](std::size_t tower) {
    const std::string prefix = fmt::format("{}{}/", kTower, tower);
    return std::ranges::any_of(parts_.job.restored()->local, [&](const NamedTensor& local) {
      return local.name.starts_with(prefix);
    });
  };
  std::size_t saved = 1;
  while (is_saved(saved)) ++saved;
  if (saved == parts_.contexts.size()) return;
  parts_.say(fmt::format(
      "the checkpoint has the local variables of {}, and this run has {}: {}",
      counted(saved, "tower"), parts_.contexts.size(),
      saved < parts_.contexts.size() ? "those of the others begin anew" : "the rest is left out"));
}

TaskState SessionSaving::own_state() {
  TaskState state;
  state.worker = parts_.cluster.task.index;
  if (parts_.loop != nullptr) {
    state.step = parts_.loop->last().step;
    state.position = parts_.loop->position();
  }
  if (tell_position_) tell_position_(state.position);
  parts_.job.control().add_own_state(state);
  for (std::size_t tower = 0; tower < parts_.contexts.size(); ++tower) add_locals(state, tower);
  return state;
}

void SessionSaving::add_locals(TaskState& state, std::size_t tower) const {
  for (std::size_t graph = 0; graph < parts_.graphs.size(); ++graph) {
    const LocalMemory* const locals =
        parts_.contexts[tower]->plans().used_locals(*parts_.graphs[graph]);
    if (locals == nullptr) continue;
    for (const auto& [name, view] : locals->views()) {
      state.local.push_back(
          {saved_prefix(graph, parts_.trained_graphs, tower) + name, locals->read(name)});
    }
  }
}

void SessionSaving::tell_state() {
  const TaskState state = own_state();
  const std::string why = why_left_out(state);
  if (!why.empty() && !std::exchange(left_out_, true)) {
    print_text(stderr, fmt::format("paceline: {}\n", why));
  }
  parts_.job.control().send_state(state);
}

void SessionSaving::tend() {
  if (parts_.job.control().state_asked()) tell_state();
  const TrainLoop* const loop = parts_.loop;
  if (saves() && due_.at(loop->last().global_step, loop->last_made_at())) begin();
  if (saver_ && parts_.run.keep_best && reports_due_.at(0, loop->last_made_at()) &&
      !saver_->busy()) {
    saver_->take_reports();
    reports_due_.begin(0, loop->last_made_at());
  }
}

// In rounds of all workers the values cannot change without this worker, and a read waits for the
// last round.
bool SessionSaving::values_stand_still() const {
  const StrategyKind& kind = strategy_kind(parts_.cluster);
  const Strategy& strategy = parts_.cluster.strategy;
  return !kind.has_ps() || (kind.in_rounds(strategy) && strategy.replicas == 0);
}

SessionSaving::ToEvaluate SessionSaving::save_to_evaluate() {
  if (!parts_.run.keep_best || parts_.loop == nullptr || !saves()) return {};
  if (set_at_ == parts_.loop->last().step) return {};
  if (saver_ == nullptr) make_saver(0);
  const bool still = values_stand_still();
  // A save may last until the other workers have made a step, and for that step they wait for this
  // worker.
  if (still && begun_at_ == parts_.loop->last().step) return {saver_->last_begun(), ""};
  const std::int64_t step = parts_.job.store().global_step();
  if (saver_->saved_step() != step) {
    start_save(step);
    due_.begin(step, parts_.clock.now());
  }
  if (still) return {saver_->last_begun(), ""};
  const std::int64_t saved = saver_->saved_step();
  if (saved < 0) return {std::make_shared<EvaluatedCheckpoint>(), ""};
  return {saver_->last_begun(), Checkpoints(checkpoints_folder(parts_.run)).path_of(saved)};
}

bool SessionSaving::marked_none() const { return saver_ && saver_->marked_none(); }

void SessionSaving::note_number(EvaluatedCheckpoint& checkpoint, double value) {
  if (saver_) saver_->note(checkpoint, value);
}

void SessionSaving::wait_for_marks() {
  if (saver_ == nullptr || parts_.cluster.distributed()) return;
  try {
    wait_for_saver();
  } catch (const Error&) {
    // The user was told that the save has failed.
  }
}

bool SessionSaving::begin() {
  if (!saves()) return false;
  if (saver_ == nullptr) make_saver(0);
  const TimePoint now = parts_.clock.now();
  if (saver_->busy()) {
    if (!late_since_) late_since_ = now;
    return false;
  }
  if (late_since_) late_ += now - *late_since_;
  late_since_.reset();
  start_save(parts_.loop->last().global_step);
  due_.begin(parts_.loop->last().global_step, now);
  return true;
}

void SessionSaving::start_save(std::int64_t global_step) {
  begun_at_ = parts_.loop->last().step;
  saver_->start(own_state(), global_step);
}

void SessionSaving::save() {
  if (!saves()) return;
  if (saver_ == nullptr) make_saver(0);
  if (saver_->saved_step() == parts_.job.store().global_step()) return;
  begin();
  wait_for_saver();
}

void SessionSaving::wait_for_saver() {
  const TimePoint began = parts_.clock.now();
  saver_->wait();
  waited_ += parts_.clock.now() - began;
}

void SessionSaving::add_to(Report& report) const {
  const Saver::Written written = saver_ ? saver_->written() : Saver::Written();
  if (written.count == 0) return;
  const auto seconds = [](Duration time) { return std::chrono::duration<double>(time).count(); };
  const Duration late = late_ + (late_since_ ? parts_.clock.now() - *late_since_ : Duration(0));
  report.set("checkpoints", "written", written.count);
  report.set("checkpoints", "seconds_each", written.seconds / written.count);
  report.set("checkpoints", "bytes_per_s", written.bytes / std::max(1e-9, written.seconds));
  report.set("checkpoints", "late_s", seconds(late));
  report.set("checkpoints", "waited_s", seconds(waited_));
}

// Saves the state after the last step of every worker.
void SessionSaving::save_at_end() { save_last(Deadline::after(kWaitForLastSteps)); }

void SessionSaving::save_interrupted() {
  const bool any = parts_.job.control().any_worker_saves();
  save_last(Deadline::after(any ? kWaitForInterrupted : Duration(0)));
}

// This task makes no further step, so no other task waits for it meanwhile.
void SessionSaving::save_last(Deadline deadline) {
  if (parts_.run.out.empty()) return;
  if (parts_.job.control().others_save()) tell_state();
  if (!saves_end(deadline)) return;
  if (saver_ == nullptr) make_saver(0);
  const std::int64_t step = parts_.job.store().global_step();
  // The last checkpoint may still be in progress.
  const TimePoint began = parts_.clock.now();
  if (saver_->saved_step() != step) {
    start_save(step);
    saver_->wait();
  }
  parts_.job.control().set_saved();
  waited_ += parts_.clock.now() - began;
}

// Waits for the last steps of the others, and until it is known which task saves these steps.
// Returns true if this task saves them.
bool SessionSaving::saves_end(Deadline deadline) {
  JobControl& control = parts_.job.control();
  const bool any = control.any_worker_saves();
  if (!any && !parts_.cluster.is_chief()) return false;
  while (!parts_.job.wait_all_done(Deadline::after(kLookForInterruptEvery)) && !deadline.passed()) {
    if (parts_.job.interrupted() && !any) break;
  }
  if (!any) return true;
  while (true) {
    const EndSave by =
        control.wait_end_save(Deadline::after(kLookForInterruptEvery), !deadline.passed());
    if (by != EndSave::kUnknown) return by == EndSave::kHere;
  }
}

}  // namespace paceline
