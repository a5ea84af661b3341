// What a session saves, when, and how it goes on from it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "cluster/interrupt.h"
#include "cluster/run_folder.h"
#include "paceline/error.h"
#include "paceline/version.h"
#include "train/session_impl.h"

namespace paceline {
namespace {

// Of the graph that trains, among local variables of a checkpoint.
constexpr std::string_view kTrainGraph = "train/";
// Steps of the others that are under way when the chief has ended.
constexpr Duration kWaitForLastSteps = std::chrono::seconds(10);
// Long enough to cost nothing, short enough for Ctrl-C.
constexpr Duration kLookForInterrupt = std::chrono::milliseconds(250);

Tensor copy_of_view(const TensorView& view) {
  Tensor tensor(view.dtype, view.shape);
  if (view.bytes() > 0) std::memcpy(tensor.raw(), view.data, view.bytes());
  return tensor;
}

}  // namespace

void Session::Impl::restore() {
  save_due_.begin(loop->last().global_step);
  if (!job->restored()) return;
  restored_position = job->restored()->position;
  const LocalMemory& locals = plans->locals(*graphs[0]);
  for (const auto& [name, tensor] : job->restored()->local) {
    if (!name.starts_with(kTrainGraph)) continue;
    const std::string_view local = std::string_view(name).substr(kTrainGraph.size());
    const bool fits = locals.contains(local) && locals.view(local).dtype == tensor.dtype() &&
                      locals.view(local).shape == tensor.shape();
    if (!fits) {
      throw Error(ErrorCode::kFailedPrecondition,
                  fmt::format("[session] local variable {} {} {} of the checkpoint is not the "
                              "model's",
                              local, name_of(tensor.dtype()), tensor.shape().str()));
    }
    if (tensor.bytes() > 0) std::memcpy(locals.view(local).data, tensor.raw(), tensor.bytes());
  }
}

void Session::Impl::make_saver() {
  if (run_options.out.empty() || !cluster.is_chief()) return;
  saver = std::make_unique<Saver>(Saver::Parts{
      .store = job->store(),
      .folder = checkpoints_folder(run_options),
      .keep = run_options.keep,
      .notes = {{"model", options.model},
                {"seed", std::to_string(run_options.seed)},
                {"precision", std::string(name_of(cluster.precision))}},
      .say = [this](const std::string& line) { print(line, false); },
      .complain = [](const std::string& line) { fmt::print(stderr, "paceline: {}\n", line); }});
}

TaskState Session::Impl::own_state() {
  TaskState state;
  state.worker = cluster.task.index;
  state.step = own_steps();
  if (tell_position) tell_position(state.position);
  for (const auto& [name, view] : plans->locals(*graphs[0]).views()) {
    state.local.push_back({std::string(kTrainGraph) + name, copy_of_view(view)});
  }
  return state;
}

void Session::Impl::tend_saving() {
  if (job->control() != nullptr && job->control()->state_asked()) {
    job->control()->send_state(own_state());
  }
  if (saver != nullptr && save_due_.at(loop->last().global_step)) begin_save();
}

bool Session::Impl::begin_save() {
  if (saver == nullptr || saver->busy()) return false;
  saver->start(own_state(), loop->last().global_step);
  save_due_.begin(loop->last().global_step);
  return true;
}

void Session::Impl::save() {
  if (saver == nullptr || saver->saved_step() == job->store().global_step()) return;
  begin_save();
  saver->wait();
}

// The chief's values are then those of everybody's last step.
void Session::Impl::save_at_end() {
  if (job->control() != nullptr && !run_options.out.empty()) {
    job->control()->send_state(own_state());
  }
  if (saver == nullptr) return;
  const Deadline deadline = Deadline::after(kWaitForLastSteps);
  while (!deadline.passed() && !job->wait_all_done(Deadline::after(kLookForInterrupt))) {
    if (job->interrupted()) break;
  }
  save();
}

void Session::Impl::finish_training() {
  while (!job->wait_all_done(Deadline::after(kLookForInterrupt))) check_interrupt();
}

void Session::Impl::check_interrupt() {
  if (!job->interrupted()) return;
  std::string message = fmt::format("{} was interrupted", cluster.task.str());
  if (loop != nullptr) message += fmt::format(" at step {}", loop->last().global_step);
  if (run_options.interrupt != nullptr) run_options.interrupt->take_time();
  if (saver != nullptr) save();
  if (cluster.is_chief() && !cluster.launched && loop != nullptr) {
    message += how_to_go_on(run_options);
  }
  job->leave();
  throw Error(ErrorCode::kCancelled, message);
}

Tensor Session::Impl::read_variable(std::string_view name) {
  const auto& specs = job->store().variables();
  const auto found = std::ranges::find(specs, name, &VariableSpec::name);
  if (found == specs.end()) {
    throw Error(ErrorCode::kNotFound, fmt::format("[session] no variable '{}'", name));
  }
  const VariableId id = VariableId(found - specs.begin());
  return job->store().read({&id, 1}).front().value;
}

// A program whose training ends with its data has not said so before.
void Session::Impl::end_well() {
  try {
    if (loop != nullptr && loop->steps_made() > 0) save_at_end();
  } catch (const std::exception& error) {
    fail(error.what());
    return fmt::print(stderr, "paceline: error: {}\n", error.what());
  }
  print_summary();
}

}  // namespace paceline
