#include "params/worker/ps_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "base/copy_bytes.h"
#include "net/tls/link_security.h"
#include "paceline/error.h"
#include "params/protocol/frame_cuts.h"
#include "params/variable_arrays.h"
#include "params/wire/round_messages.h"
#include "params/wire/traced_messages.h"
#include "params/worker/checkpoint_client.h"
#include "params/worker/ps_connection.h"
#include "params/worker/ps_steps.h"
#include "params/worker/worker_driver.h"
#include "params/worker/worker_state.h"

namespace paceline {
namespace {

// A worker's side of the fence between rounds: the workers commit rounds among themselves, and the
// ps tasks apply the committed rounds.

class PsRoundFence : public RoundFence {
 public:
  explicit PsRoundFence(WorkerContext& context) : context_(context) {}

  void begin(std::int64_t round) override;
  void wait_given() override;
  float commit(std::span<const std::int32_t> contributors, std::optional<double> squares) override;
  void lose(std::int64_t round) override;
  void wait_closed() override;
  void begin_again(const std::string& why, std::vector<std::int32_t> unreached) override {
    context_.driver.begin_again(why, {std::move(unreached)});
  }
  void check() const override;
  bool is_cut_off() const override;
  std::uint64_t ps_incarnation() const override;

 private:
  template <typename Predicate>
  void wait_for_ps(const char* what, Predicate&& come);
  bool is_done() const;
  bool lets_others_tell() const;
  template <typename Predicate>
  void tell_commit(Predicate&& known);
  [[noreturn]] void others_went_on(std::int64_t round) const;

  WorkerContext& context_;
  std::int64_t round_ = 0;                  // the round of the last step that was begun
  bool settled_ = false;                    // all values of the last answers belong to one round
  std::optional<std::uint64_t> committed_;  // the contributors of the last step, if it counts
  // A commit that the ps tasks have not been told, since the other members are to tell it first.
  std::optional<CommittedRound> untold_;
};

// How long the other members may take to tell a commit first. They need a fraction of this time,
// unless they are lost.
constexpr Duration kOthersTellWithin = std::chrono::milliseconds(100);

// Waits as long as one reply may take: no ps waits for another worker before it answers.
template <typename Predicate>
void PsRoundFence::wait_for_ps(const char* what, Predicate&& come) {
  WorkerState& core = context_.core;
  std::optional<AccountScope> scope;
  if (core.options().account != nullptr) scope.emplace(*core.options().account, Activity::kWait);
  if (core.wait_for_reply(come)) return;
  core.fail_late(fmt::format("{} of round {} did not come", what, round_), "from the ps tasks");
}

bool PsRoundFence::is_done() const { return context_.core.steps_done >= context_.core.steps_sent; }

void PsRoundFence::others_went_on(std::int64_t round) const {
  throw LeftBehind(
      fmt::format("the others went on without worker:{}: the ps tasks have closed {} rounds, and "
                  "its own group {}",
                  context_.core.options().task.index, context_.core.global_step.load(), round));
}

void PsRoundFence::begin(std::int64_t round) {
  wait_closed();
  round_ = round;
  WorkerState& core = context_.core;
  if (!settled_ || core.global_step < round) {
    context_.driver.await_round(round);
    wait_for_ps("the end", [&] { return core.round_is_open.load(); });
    std::ranges::fill(context_.held, Freshness::kNothing);
    ++context_.uses;
  }
  if (core.global_step != round) others_went_on(round);
  settled_ = true;
}

bool PsRoundFence::lets_others_tell() const {
  return untold_->contributors.size() > 1 &&
         untold_->contributors.front() == context_.core.options().task.index;
}

// Tells the ps tasks that this worker has committed the round, but first gives the other members
// time to tell them.
//
// The reason: the member that commits first may be lost before the others hear of its commit. The
// others then make the step again without the lost member, and the ps tasks must not have heard of
// a commit that the others do not know. After kOthersTellWithin this worker tells the commit in any
// case, since the others may have closed the round meanwhile.
template <typename Predicate>
void PsRoundFence::tell_commit(Predicate&& known) {
  if (!untold_) return;
  if (lets_others_tell()) context_.core.wait(Deadline::after(kOthersTellWithin), known);
  context_.driver.commit(*untold_);
  untold_.reset();
}

// Waits until the contribution is on every ps, which ps 0 confirms (kGiven). If a ps drops a late
// contribution, no kGiven arrives, but the step is done at once.
void PsRoundFence::wait_given() {
  committed_.reset();
  wait_for_ps("the receipt", [this] {
    return context_.core.steps_given >= context_.core.steps_sent || is_done();
  });
}

float PsRoundFence::commit(std::span<const std::int32_t> contributors,
                           std::optional<double> squares) {
  committed_ = fingerprint_of(contributors);
  WorkerState& core = context_.core;
  untold_ = {.round = round_,
             .contributors = {contributors.begin(), contributors.end()},
             .squares = squares.value_or(0)};
  if (!lets_others_tell()) tell_commit([] { return false; });  // no other member tells it
  if (!squares) return 1;
  const auto has_scale = [&] { return core.scaled_round == round_ || is_done(); };
  tell_commit(has_scale);
  wait_for_ps("the norm", has_scale);
  if (core.scaled_round != round_) others_went_on(round_ + 1);
  return core.scale;
}

// Withdraws the step, unless the other members have committed its round without this worker. In
// that case the step ends by what the others tell the ps tasks.
void PsRoundFence::lose(std::int64_t round) {
  settled_ = false;
  if (round <= round_) context_.driver.withdraw(context_.core.steps_sent - 1);
  wait_for_ps("the end", [this] { return is_done(); });
}

void PsRoundFence::wait_closed() {
  tell_commit([this] { return is_done(); });
  if (!is_done()) wait_for_ps("the end", [this] { return is_done(); });
  if (committed_ && *committed_ != context_.core.last_contributors) others_went_on(round_ + 1);
}

void PsRoundFence::check() const { context_.core.check(); }

bool PsRoundFence::is_cut_off() const { return context_.core.cut_off > 0; }

std::uint64_t PsRoundFence::ps_incarnation() const { return context_.driver.ps_incarnation(); }

// The time in which the last frames of a leaving worker must be sent.
constexpr Duration kGoodbyeTimeout = std::chrono::seconds(5);

LinkOptions link_options(const PsStoreOptions& options) {
  LinkOptions link;
  link.security = load_security(options.security);
  link.refused = options.say;
  return link;
}

class PsStoreImpl : public PsStore {
 public:
  PsStoreImpl(const PsStoreOptions& options, std::vector<VariableSpec> variables)
      : options_(options),
        core_(std::move(variables), options_),
        driver_(options_, core_),
        steps_{.core = core_,
               .connections = connections_,
               .driver = driver_,
               .held = std::vector<Freshness>(core_.variables().size(), Freshness::kNothing)},
        link_(make()) {
    core_.set_link(link_.get(), link_options_.spin);
    join_all();
  }

  std::span<const VariableSpec> variables() const override { return core_.variables(); }
  std::unique_ptr<StoreSteps> bind(const PlanBinding& plan, float clip_norm) override {
    return make_ps_steps(steps_, plan, clip_norm);
  }
  void write(std::vector<VariableState> states, std::int64_t global_step) override;
  bool initialised() const override { return driver_.initialised(); }
  std::vector<VariableState> read(std::span<const VariableId> variables) override;
  std::int64_t global_step() const override { return core_.global_step; }
  StoreAccount account() const override;
  std::vector<StoreLink> links() const override;
  Staleness staleness() const override { return driver_.staleness(); }
  std::int64_t skipped() const override { return steps_.skipped; }

  void wait_initialised() override { driver_.wait_initialised(); }
  bool rounds() const override {
    return std::ranges::any_of(connections_, [](const auto& ps) { return !ps->wire().exact(); });
  }
  std::string placement_text() const override {
    return paceline::placement_text(core_.variables(), core_.pieces());
  }

  bool all_warm() const override { return core_.all_warm; }
  bool all_done() const override { return core_.all_done; }
  bool any_done() const override { return core_.any_done; }
  void set_done() override { driver_.set_done(); }
  void end_training() override { driver_.end_training(); }
  bool training_ended() const override { return core_.training_ended; }
  bool wait_all_done(Deadline deadline) override {
    return core_.wait(deadline, [&] { return core_.all_done.load(); });
  }
  void goodbye() override;

  bool was_initialised() const override { return driver_.was_initialised(); }
  void restore(std::span<const TaskState> states) override;
  std::int64_t next_step() const override { return driver_.next_step(); }
  std::optional<TaskState> restored() const override { return driver_.restored(); }
  bool state_asked() const override { return core_.state_asked != 0; }
  bool others_save() const override { return true; }
  void send_state(const TaskState& state) override;
  void ask_progress() override {
    for (const auto& ps : connections_) ps->ask_progress();
  }
  bool stop_asked() const override { return core_.stop_asked; }
  std::shared_ptr<SharedRecordBlocks> records() const override { return driver_.records(); }

  RoundFence& round_fence() override { return fence_; }

  std::vector<std::string> prepare_saving(const std::string& folder) override {
    saving_ = std::make_unique<CheckpointClient>(core_, connections_);
    return saving_->prepare_saving(folder);
  }
  void mark() override { saving_->mark(); }
  SavedShards write_shards(const std::string& folder) override {
    return saving_->write_shards(folder);
  }

 private:
  std::unique_ptr<Link> make() const {
    if (options_.link_factory) return options_.link_factory(link_options_);
    return traced(make_link(options_.link, link_options_), options_.timeline);
  }
  void join_all();
  void write_piece(const Piece& piece, const VariableState& state);
  void write_array(const Piece& piece, std::size_t array, std::span<const std::byte> bytes);
  void check_state(const VariableState& state) const;
  void send_reads(std::span<const VariableId> variables);
  void wait_for_values_of_round(std::span<const VariableId> variables);
  const PsConnection& slowest(int written) const;

  const PsStoreOptions options_;
  const LinkOptions link_options_ = link_options(options_);
  WorkerState core_;
  WorkerDriver driver_;
  std::vector<std::unique_ptr<PsConnection>> connections_;  // by ps
  WorkerContext steps_;
  PsRoundFence fence_{steps_};
  std::unique_ptr<CheckpointClient> saving_;
  std::vector<VariableState> writing_;  // borrowed by frames until they are sent
  ContributionBuffer written_;          // counts those frames
  std::unique_ptr<Link> link_;
  /// Runs also when joining fails. Ends the link before the members above are destroyed, since the
  /// link's threads call these members, and frames that are being sent borrow from them.
  struct Shutdown {
    PsStoreImpl& store;
    ~Shutdown() {
      store.driver_.stop();
      store.link_.reset();
      for (const auto& ps : store.connections_) ps->abandon();
    }
  } shutdown_{*this};  // last
};

void PsStoreImpl::join_all() {
  if (options_.spec.ps.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "[store] the cluster spec has no ps");
  }
  for (std::size_t i = 0; i < options_.spec.ps.size(); ++i) {
    connections_.push_back(
        std::make_unique<PsConnection>(core_, driver_, int(i), options_.spec.ps[i]));
  }
  driver_.use(*link_, connections_);
  driver_.join();
}

void PsStoreImpl::check_state(const VariableState& state) const {
  const VariableSpec& variable = core_.variables()[std::size_t(state.variable)];
  const std::vector<SlotSpec> slots = slots_of(variable);
  bool fits = state.value.dtype() == variable.dtype && state.value.shape() == variable.shape &&
              (state.slots.empty() || state.slots.size() == slots.size());
  for (std::size_t i = 0; fits && i < state.slots.size(); ++i) {
    fits = state.slots[i].elements() == (slots[i].scalar ? 1 : variable.shape.elements());
  }
  if (!fits) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("[store] what is written to {} is not {} {} with {} slots", variable.name,
                    name_of(variable.dtype), variable.shape.str(), slots.size()));
  }
}

void PsStoreImpl::write_array(const Piece& piece, std::size_t array,
                              std::span<const std::byte> bytes) {
  for (const Cut cut : byte_cuts(bytes.size())) {
    ++written_.in_flight;
    connections_[std::size_t(piece.ps)]->send(
        MessageType::kWrite, {.flags = std::uint16_t(array), .id = piece.id, .offset = cut.begin},
        bytes.subspan(cut.begin, cut.size), &ContributionBuffer::sent, &written_);
  }
}

void PsStoreImpl::write_piece(const Piece& piece, const VariableState& state) {
  const std::vector<SlotSpec> slots = slots_of(core_.variables()[std::size_t(piece.variable)]);
  const std::size_t begin = std::size_t(piece.first_row) * core_.row_bytes(piece.variable);
  const auto rows = [&](const Tensor& tensor) {
    return std::span(static_cast<const std::byte*>(tensor.raw()) + begin, core_.bytes_of(piece));
  };
  write_array(piece, 0, rows(state.value));
  for (std::size_t i = 0; i < state.slots.size(); ++i) {
    const Tensor& slot = state.slots[i];
    write_array(piece, i + 1,
                slots[i].scalar ? std::as_bytes(slot.data<std::int64_t>()) : rows(slot));
  }
}

const PsConnection& PsStoreImpl::slowest(int written) const {
  for (const auto& ps : connections_) {
    if (driver_.written(ps->ps()) <= written) return *ps;
  }
  return *connections_.front();
}

void PsStoreImpl::write(std::vector<VariableState> states, std::int64_t global_step) {
  core_.check();
  for (const VariableState& state : states) check_state(state);
  const int before = driver_.written(0);
  writing_ = std::move(states);
  written_.wakeup = &core_.wakeup();
  for (const VariableState& state : writing_) {
    for (const Piece& piece : core_.pieces_of(state.variable)) write_piece(piece, state);
  }
  for (const auto& ps : connections_) {
    ps->send_small(MessageType::kWriteEnd, encode_number(global_step));
  }
  const auto left = [&] {
    return written_.in_flight + std::ranges::count_if(connections_, [&](const auto& ps) {
             return driver_.written(ps->ps()) <= before;
           });
  };
  if (!core_.wait_for_all(left)) {
    core_.fail_late("values were written and not confirmed", "by " + slowest(before).text());
  }
  writing_.clear();
  ++steps_.uses;
  std::fill(steps_.held.begin(), steps_.held.end(), Freshness::kNothing);
  wait_initialised();
}

void PsStoreImpl::send_reads(std::span<const VariableId> variables) {
  std::vector<std::vector<std::uint32_t>> ids(connections_.size());
  for (const VariableId variable : variables) {
    for (const Piece& piece : core_.pieces_of(variable)) {
      ids[std::size_t(piece.ps)].push_back(piece.id);
    }
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i].empty()) continue;
    connections_[i]->send_small(MessageType::kRead, std::as_bytes(std::span(ids[i])));
  }
}

// A ps sends the message that a round has ended before it sends the round's values. So the values
// may still be arriving in the memory that is read here.
void PsStoreImpl::wait_for_values_of_round(std::span<const VariableId> variables) {
  if (core_.options().aggregation.kind != AggregationKind::kRounds) return;
  const auto awaited = [&] {
    return std::ranges::count_if(
        variables, [&](VariableId variable) { return core_.missing(variable) != nullptr; });
  };
  if (!core_.wait_for_all(awaited)) {
    core_.fail_late("values of a round were not sent", "by a ps");
  }
}

// Reads values from the ps tasks. Later evaluate steps see these values, too.
std::vector<VariableState> PsStoreImpl::read(std::span<const VariableId> variables) {
  core_.check();
  wait_initialised();
  PendingRead& read = core_.start_read(variables);
  send_reads(variables);
  if (!core_.wait_for_all([&] { return read.missing(); })) {
    core_.fail_late("values that are read were not sent",
                    "by " + connections_[std::size_t(read.first_missing())]->text());
  }
  wait_for_values_of_round(variables);
  ++steps_.uses;
  std::vector<VariableState> states = read.take();
  for (const VariableState& state : states) {
    const Tensor& held = core_.value(state.variable);
    if (!held.defined()) continue;
    copy_bytes(held.raw(), state.value.raw(), held.bytes());
    steps_.held[std::size_t(state.variable)] = Freshness::kWhole;
  }
  return states;
}

void PsStoreImpl::restore(std::span<const TaskState> states) {
  for (const TaskState& state : states) {
    connections_.front()->send_task_state(state, 0);
  }
}

void PsStoreImpl::send_state(const TaskState& state) {
  connections_.front()->send_task_state(state, driver_.take_state_asked());
}

StoreAccount PsStoreImpl::account() const {
  StoreAccount account;
  for (const auto& ps : connections_) {
    const Traffic& traffic = ps->traffic();
    account.bytes_sent += traffic.bytes_sent;
    account.bytes_received += traffic.bytes_received;
    account.transfer += Duration(traffic.busy_ns);
  }
  return account;
}

std::vector<StoreLink> PsStoreImpl::links() const {
  std::vector<StoreLink> links;
  for (const auto& ps : connections_) links.push_back(ps->link());
  return links;
}

void PsStoreImpl::goodbye() {
  const Deadline deadline = Deadline::after(kGoodbyeTimeout);
  driver_.say_goodbye();
  const auto confirmed = [this](const auto& ps) {
    return ps->goodbye_confirmed() || driver_.has_closed(ps->ps());
  };
  try {
    core_.wait(deadline, [&] { return std::ranges::all_of(connections_, confirmed); });
    for (const auto& ps : connections_) ps->close(deadline);
    core_.wait(deadline, [&] { return driver_.all_closed(); });
  } catch (const Error&) {
    // A ps that was lost already needs no goodbye.
    for (const auto& ps : connections_) ps->close(deadline);
  }
}

}  // namespace

std::unique_ptr<PsStore> PsStore::join(const PsStoreOptions& options,
                                       std::vector<VariableSpec> variables) {
  return std::make_unique<PsStoreImpl>(options, std::move(variables));
}

}  // namespace paceline
