#include "train/saver.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/failure_text.h"
#include "checkpoint/checkpoint_save.h"
#include "paceline/cluster.h"
#include "paceline/error.h"
#include "params/shard/saved_variables.h"

namespace paceline {
namespace {

SavedTask saved_task(const TaskState& state) {
  SavedTask task;
  task.task = TaskId{TaskId::Role::kWorker, state.worker}.str();
  task.step = task.applied = state.step;
  task.position = state.position.numbers;
  task.sums = state.position.sums;
  return task;
}

// Adds the task. Its local variables, if it has some, become a file of their own.
void add_task(CheckpointIndex& index, const std::string& folder, const TaskState& state) {
  SavedTask& task = index.tasks.emplace_back(saved_task(state));
  if (state.local.empty()) return;
  task.file = local_name(task.task);
  for (const auto& [name, tensor] : state.local) {
    task.local.push_back({name, tensor.dtype(), tensor.shape()});
  }
  index.files.push_back(write_safetensors(folder + "/" + task.file, state.local));
}

std::uint64_t bytes_of(const CheckpointIndex& index) {
  std::uint64_t bytes = 0;
  for (const WrittenFile& file : index.files) bytes += file.bytes;
  return bytes;
}

}  // namespace

Saver::Saver(Parts parts) : parts_(std::move(parts)), checkpoints_(parts_.folder) {
  Disk::machine().make_folder(parts_.folder);
  for (const std::string& line : parts_.store.prepare_saving(parts_.folder)) parts_.say(line);
  // Training that has just resumed has its checkpoint already.
  const auto newest = checkpoints_.newest_whole(WholeCheck::kSizes).whole;
  if (newest && newest->step == parts_.global_step) saved_step_ = newest->step;
  last_begun_ = std::make_shared<EvaluatedCheckpoint>();
  if (saved_step_ >= 0) last_begun_->step = saved_step_;
  begun_.emplace_back(last_begun_);
  if (parts_.keep_best) keeper_.emplace(checkpoints_, *parts_.keep_best, parts_.say);
  take_reports();
}

// Deletes checkpoints once more, since the last mark may have replaced the mark of an older one.
Saver::~Saver() {
  if (last_.valid()) last_.wait();
  if (!keeper_) return;
  try {
    keep_newest();
  } catch (const std::exception& error) {
    parts_.complain(failure_text(error));
  }
}

bool Saver::busy() const {
  return last_.valid() && last_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

Saver::Written Saver::written() const {
  const std::lock_guard lock(counting_);
  return written_;
}

void Saver::note(EvaluatedCheckpoint& checkpoint, double value) {
  const std::lock_guard lock(marking_);
  checkpoint.number = value;
  if (checkpoint.step) mark_if_best(*checkpoint.step, value);
}

bool Saver::marked_none() {
  const std::lock_guard lock(marking_);
  return keeper_ && !keeper_->mark().best;
}

// A report that cannot be taken now is tried again at the next call, and training goes on.
void Saver::take_reports() {
  const std::lock_guard lock(marking_);
  if (!keeper_) return;
  try {
    keeper_->take_reports();
  } catch (const std::exception& error) {
    parts_.complain(fmt::format("reports of evaluations were not taken: {}", failure_text(error)));
  }
}

// If a mark cannot be written, the mark before it stays, and so does the checkpoint of that mark.
void Saver::mark_if_best(std::int64_t step, double value) {
  if (!keeper_) return;
  try {
    keeper_->note(step, value);
  } catch (const Error& error) {
    parts_.complain(
        fmt::format("the checkpoint of step {} is not marked as the best: {}", step, error.what()));
  }
}

void Saver::finish_last_begun() {
  const std::lock_guard lock(marking_);
  last_begun_->step = saved_step_;
  if (last_begun_->number) mark_if_best(saved_step_, *last_begun_->number);
}

// Reports are taken first, since one may be of a checkpoint that is about to be deleted.
void Saver::keep_newest() {
  const std::lock_guard lock(marking_);
  if (keeper_) keeper_->take_reports();
  std::vector<std::int64_t> in_use;
  std::erase_if(begun_, [](const auto& each) { return each.expired(); });
  for (const auto& each : begun_) {
    const auto checkpoint = each.lock();
    if (checkpoint && checkpoint->step && !checkpoint->number) in_use.push_back(*checkpoint->step);
  }
  checkpoints_.keep_last(parts_.keep, in_use);
}

void Saver::start(TaskState own, std::int64_t global_step) {
  parts_.store.mark();
  last_begun_ = std::make_shared<EvaluatedCheckpoint>();
  {
    const std::lock_guard lock(marking_);
    begun_.emplace_back(last_begun_);
  }
  last_ = std::async(std::launch::async, [this, own = std::move(own), global_step] {
            run_in_background();
            save_or_complain(own, global_step);
          }).share();
}

void Saver::wait() {
  if (last_.valid()) last_.get();
}

std::int64_t Saver::saved_step() {
  try {
    wait();
  } catch (const std::exception&) {
    return -1;
  }
  return saved_step_;
}

void Saver::save_or_complain(const TaskState& own, std::int64_t global_step) {
  try {
    save(own, global_step);
  } catch (const std::exception& error) {
    const auto newest = checkpoints_.newest_to_name();
    parts_.complain(fmt::format("no checkpoint of step {}: {}; {}", global_step,
                                failure_text(error),
                                newest ? "the newest is " + newest->path : "there is none yet"));
    throw;
  }
}

CheckpointIndex Saver::write_files(const TaskState& own, const std::string& folder) {
  SavedShards shards = parts_.store.write_shards(folder);
  CheckpointIndex index;
  index.global_step = shards.global_step;
  index.notes = parts_.notes;
  index.data = parts_.data;
  index.modules = parts_.modules;
  index.settings = parts_.settings;
  index.files = std::move(shards.files);
  index.variables = std::move(shards.variables);
  TaskState chief = own;
  if (shards.unused) tell_unused(*shards.unused, chief.position);
  add_task(index, folder, chief);
  for (const TaskState& other : shards.others) add_task(index, folder, other);
  for (const std::string& line : shards.lines) parts_.complain(line);
  return index;
}

void Saver::save(const TaskState& own, std::int64_t global_step) {
  const auto began = std::chrono::steady_clock::now();
  CheckpointSave save(checkpoints_, global_step);
  const CheckpointIndex index = write_files(own, save.folder());
  const std::string path = save.finish(index);
  saved_step_ = index.global_step;
  finish_last_begun();
  try {
    keep_newest();
  } catch (const std::exception& error) {  // this checkpoint is there all the same
    parts_.complain(fmt::format("older checkpoints were not deleted: {}", failure_text(error)));
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  {
    const std::lock_guard lock(counting_);
    ++written_.count;
    written_.seconds += took.count();
    written_.bytes += double(bytes_of(index));
  }
  // The line is printed only now, so that its reader can rely on the checkpoint.
  parts_.say(fmt::format("Saving model to {} ({:.1f} MB in {:.2f} s)", path,
                         double(bytes_of(index)) * 1e-6, took.count()));
}

}  // namespace paceline
