// What a session saves, when, and how it goes on from it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/print_text.h"
#include "cluster/interrupt.h"
#include "cluster/report/run_folder.h"
#include "paceline/error.h"
#include "paceline/version.h"
#include "train/session_impl.h"

namespace paceline {
namespace {

// What local variables of the session's graphs are called in a checkpoint.
std::string saved_prefix(std::size_t graph, std::size_t trained_graphs) {
  if (graph == 0) return "train/";
  return fmt::format("{}{}/", graph < trained_graphs ? "train" : "shared", graph);
}
// Steps of the others that are under way when the chief has ended.
constexpr Duration kWaitForLastSteps = std::chrono::seconds(10);
// Long enough to cost nothing, short enough for Ctrl-C.
constexpr Duration kLookForInterrupt = std::chrono::milliseconds(250);

}  // namespace

void Session::Impl::restore() {
  save_due_.begin(loop->last().global_step);
  if (!job->restored()) return;
  restored_position = job->restored()->position;
  for (std::size_t graph = 0; graph < trained_graphs; ++graph) restore_locals(graph);
}

void Session::Impl::restore_locals(std::size_t graph) {
  if (!job->restored()) return;
  const std::string prefix = saved_prefix(graph, trained_graphs);
  for (const auto& [name, tensor] : job->restored()->local) {
    if (!name.starts_with(prefix)) continue;
    LocalMemory& locals = plans->locals(*graphs[graph]);
    const std::string_view local = std::string_view(name).substr(prefix.size());
    const bool fits = locals.contains(local) && locals.view(local).dtype == tensor.dtype() &&
                      locals.view(local).shape == tensor.shape();
    if (!fits && graph < trained_graphs) {
      throw Error(ErrorCode::kFailedPrecondition,
                  fmt::format("[session] local variable {} {} {} of the checkpoint is not the "
                              "model's",
                              local, name_of(tensor.dtype()), tensor.shape().str()));
    }
    if (fits) locals.write(local, tensor);
  }
}

void Session::Impl::make_saver() {
  if (run_options.out.empty() || !cluster.is_chief()) return;
  saver = std::make_unique<Saver>(
      Saver::Parts{.store = job->store(),
                   .folder = checkpoints_folder(run_options),
                   .keep = run_options.keep,
                   .global_step = loop->last().global_step,
                   .notes = {{"model", options.model},
                             {"seed", std::to_string(run_options.seed)},
                             {"precision", std::string(name_of(cluster.precision))}},
                   .say = [this](const std::string& line) { print(line, false); },
                   .complain =
                       [](const std::string& line) {
                         print_text(stderr, fmt::format("paceline: {}\n", line));
                       }});
}

TaskState Session::Impl::own_state() {
  TaskState state;
  state.worker = cluster.task.index;
  state.step = own_steps();
  if (tell_position) tell_position(state.position);
  for (std::size_t graph = 0; graph < graphs.size(); ++graph) {
    const LocalMemory* const locals = plans->used_locals(*graphs[graph]);
    if (locals == nullptr) continue;
    for (const auto& [name, view] : locals->views()) {
      state.local.push_back({saved_prefix(graph, trained_graphs) + name, locals->read(name)});
    }
  }
  return state;
}

void Session::Impl::tell_state() {
  const TaskState state = own_state();
  const std::string why = why_left_out(state);
  if (!why.empty() && !std::exchange(left_out_, true))
    print_text(stderr, fmt::format("paceline: {}\n", why));
  job->control().send_state(state);
}

void Session::Impl::tend_saving() {
  if (job->control().state_asked()) tell_state();
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
  if (job->control().others_save() && !run_options.out.empty()) tell_state();
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
    return failed_end(error.what());
  }
  print_summary();
}

}  // namespace paceline
