// Every worker applies the rule to all of each variable. Dividing that work would spread values and
// slots over the workers, and the death of one would then lose some of them.
#include "params/collective/collective_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "checkpoint/checkpoint_save.h"
#include "params/collective/collective_driver.h"
#include "params/collective/collective_steps.h"
#include "params/shard/saved_variables.h"

namespace paceline {
namespace {

// The others tell their states between two steps, which may be long.
constexpr Duration kStatesWithin = std::chrono::seconds(10);
constexpr Duration kStatesOfInterrupted = std::chrono::milliseconds(500);

class CollectiveStoreImpl : public CollectiveStore {
 public:
  CollectiveStoreImpl(const CollectiveOptions& options, std::vector<VariableSpec> variables)
      : options_(options),
        variables_(std::move(variables)),
        layout_(variables_.specs()),
        driver_(options_, variables_) {
    driver_.join();
    was_initialised_ = !driver_.founded();  // only worker 0 founds a group: others get its values
  }

  std::span<const VariableSpec> variables() const override { return variables_.specs(); }
  std::unique_ptr<StoreSteps> bind(const PlanBinding& plan, float clip_norm) override {
    return std::make_unique<CollectiveSteps>(driver_, variables_, options_, layout_, plan,
                                             clip_norm, skipped_);
  }
  void write(std::vector<VariableState> states, std::int64_t global_step) override;
  bool initialised() const override { return driver_.has_values(); }
  std::vector<VariableState> read(std::span<const VariableId> variables) override;
  std::int64_t global_step() const override { return driver_.step(); }
  std::int64_t skipped() const override { return skipped_; }
  StoreAccount account() const override { return driver_.account(); }
  std::vector<StoreLink> links() const override { return driver_.links(); }

  bool all_warm() const override { return driver_.all_warm(); }
  void set_done() override { driver_.set_done(); }
  bool wait_all_done(Deadline deadline) override { return driver_.wait_all_retired(deadline); }
  bool all_done() const override { return driver_.all_done(); }
  bool any_done() const override { return driver_.any_done(); }
  void end_training() override { driver_.end_training(); }
  bool training_ended() const override { return driver_.training_ended(); }
  void goodbye() override { driver_.goodbye(); }

  bool was_initialised() const override { return was_initialised_; }
  std::vector<std::int32_t> unreached() const override { return driver_.unreached(); }
  void wait_initialised() override { driver_.wait_values(); }
  void restore(std::span<const TaskState> states) override {
    restored_.assign(states.begin(), states.end());
  }
  std::int64_t next_step() const override { return driver_.next_own_step(); }
  std::optional<TaskState> restored() const override { return driver_.restored(); }
  bool state_asked() const override { return driver_.state_asked() != 0; }
  bool others_save() const override { return true; }
  void send_state(const TaskState& state) override { driver_.send_state(state); }
  void ask_progress() override { driver_.ask_progress(); }
  bool stop_asked() const override { return false; }
  std::shared_ptr<SharedRecordBlocks> records() const override { return driver_.records(); }
  bool takes_over_saving() const override { return driver_.saves(); }
  bool any_worker_saves() const override { return options_.rounds == nullptr; }
  EndSave wait_end_save(Deadline deadline, bool patient) override {
    return driver_.wait_end_save(deadline, patient);
  }
  void set_saved() override { driver_.set_saved(); }

  std::vector<std::string> prepare_saving(const std::string&) override {
    for (VariableMemory& held : variables_.all()) held.snapshot().make_room();
    return {};
  }
  void mark() override;
  SavedShards write_shards(const std::string& folder) override;

 private:
  const CollectiveOptions options_;
  HeldVariables variables_;
  const ContributionLayout layout_;
  std::vector<TaskState> restored_;
  bool was_initialised_ = false;
  std::int64_t marked_step_ = 0, skipped_ = 0;
  std::optional<RecordSet> marked_unused_;
  CollectiveDriver driver_;
};

void CollectiveStoreImpl::write(std::vector<VariableState> states, std::int64_t global_step) {
  driver_.use_values();
  {
    const std::unique_lock values = driver_.change_values();
    for (VariableState& state : states) {
      VariableMemory& memory = variables_.at(state.variable);
      memory.write(std::move(state));
    }
  }
  driver_.initialise(global_step, restored_);
}

std::vector<VariableState> CollectiveStoreImpl::read(std::span<const VariableId> variables) {
  driver_.wait_values();
  std::vector<VariableState> states;
  states.reserve(variables.size());
  for (const VariableId id : variables) states.push_back(variables_.at(id).read(id));
  return states;
}

void CollectiveStoreImpl::mark() {
  driver_.use_values();
  for (VariableMemory& held : variables_.all()) held.mark();
  marked_step_ = driver_.step();
  if (driver_.records()) marked_unused_ = driver_.unused_records();
  if (options_.rounds == nullptr) driver_.ask_states();  // else ps 0 does
}

SavedShards CollectiveStoreImpl::write_shards(const std::string& folder) {
  const std::span<const VariableSpec> specs = variables_.specs();
  // Its shard is the one after those of the ps tasks.
  const int shard = int(options_.spec.ps.size()), shards = shard + 1;
  std::vector<Piece> pieces = place_variables(specs, 1);
  for (Piece& piece : pieces) piece.ps = shard;
  SavedShards saved{.global_step = marked_step_,
                    .files = {},
                    .variables = saved_variables(specs, pieces, shards),
                    .others = {}};
  const auto read = [this](const Piece& piece, std::size_t array, std::size_t offset,
                           std::size_t bytes) {
    return variables_.at(piece.variable).read_marked(array, offset, bytes);
  };
  saved.unused = marked_unused_;
  saved.files.push_back(
      write_shard(folder + "/" + shard_name(shard, shards), specs, pieces, shard, shards, read));
  for (VariableMemory& held : variables_.all()) held.snapshot().drop();
  if (options_.rounds != nullptr) return saved;
  std::set<int> silent;
  const Duration within = driver_.left_step() ? kStatesOfInterrupted : kStatesWithin;
  saved.others = driver_.inbox().wait(Deadline::after(within), silent);
  for (const int worker : silent) {
    saved.lines.push_back(fmt::format(
        "the checkpoint of step {} has an older state of worker:{}, or none: it has not told it "
        "within {} s",
        marked_step_, worker, std::chrono::duration<double>(within).count()));
  }
  return saved;
}

}  // namespace

std::unique_ptr<CollectiveStore> CollectiveStore::join(const CollectiveOptions& options,
                                                       std::vector<VariableSpec> variables) {
  return std::make_unique<CollectiveStoreImpl>(options, std::move(variables));
}

}  // namespace paceline
