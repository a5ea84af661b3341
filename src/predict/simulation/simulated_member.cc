#include "predict/simulation/simulated_member.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "predict/simulation/known_messages.h"
#include "predict/simulation/virtual_seconds.h"

namespace paceline {
namespace {

constexpr std::size_t kRingBytes =
    std::size_t{64} * 1024 * sizeof(float);  // the bytes of a ring's frame
constexpr std::size_t kLine = 64;
constexpr std::uint16_t kFinalSum = 1, kSummedPart = 1;
constexpr std::size_t kNowhere = ~std::size_t{0};

PlanBinding binding_of(const SimulatedStep& step, const std::vector<VariableId>& plan) {
  PlanBinding binding;
  for (const VariableId v : plan) {
    const StepVariable& use = step.variables[std::size_t(v)];
    binding.uses.push_back({.variable = v, .updated = use.updated, .most_rows = use.most_rows});
  }
  return binding;
}

}  // namespace

SimulatedMember::SimulatedMember(SimulatedWorld& world, int index, const Members& members)
    : world_(world),
      index_(index),
      host_(world.job.cluster.workers[std::size_t(index)]),
      members_(members),
      group_(
          {.worker = index, .workers = world.num_workers(), .join_timeout = kSimulatedJoinTimeout},
          world.time.now()),
      streams_in_(std::size_t(world.num_workers()), -1) {
  for (const std::vector<VariableId>& plan : world.plans) {
    Layout& layout = layouts_.emplace_back();
    layout.buckets = buckets_of(world.step.specs, ContributionLayout(world.step.specs),
                                binding_of(world.step, plan));
    layout.bucket_of.assign(world.step.specs.size(), kNowhere);
    for (std::size_t b = 0; b < layout.buckets.size(); ++b) {
      for (const VariableId v : layout.buckets[b].variables) layout.bucket_of[std::size_t(v)] = b;
    }
  }
}

void SimulatedMember::connect() {
  for (const auto& other : members_) {
    if (other.get() == this) {
      streams_.push_back(-1);
      continue;
    }
    streams_.push_back(world_.transport.open(host_, other->host(), *other, index_));
    other->streams_in_[std::size_t(index_)] = streams_.back();
  }
}

void SimulatedMember::start() {
  for (int other = 0; other < size(); ++other) {
    if (other == index_) continue;
    const bool shares = world_.transport.shared(streams_[std::size_t(other)]);
    drive([&](Outbox& out) { group_.connected(other, shares, world_.time.now(), out); });
  }
  tick();
}

void SimulatedMember::tick() {
  drive([&](Outbox& out) { group_.tick(world_.time.now(), out); });
  world_.time.after(CollectiveGroup::kTick, [this] { tick(); });
}

void SimulatedMember::drive(const std::function<void(Outbox&)>& event) {
  Outbox out;
  event(out);
  for (Outbox::Action& action : out.actions()) {
    std::visit(OutboxActions{[&](Outbox::Send& it) {
                               SimulatedFrame frame{.type = it.message.type,
                                                    .wire_bytes = kSimulatedControlBytes};
                               const int to = int(it.to);
                               frame.control =
                                   std::make_shared<const ControlMessage>(std::move(it.message));
                               send(to, std::move(frame));
                             },
                             [](const Outbox::Decide&) {}, [](const Outbox::Clip&) {},
                             [](const Outbox::Connect&) {}, [](NotInASteadyRun) {}},
               action);
  }
  look();
}

// Does what the state machine asks for, as the real driver does.
void SimulatedMember::look() {
  if (group_.founded() && !std::exchange(initialised_, true)) {
    return drive([&](Outbox& out) { group_.initialise(0, {}, world_.time.now(), out); });
  }
  if (group_.must_rest()) {
    return drive([&](Outbox& out) { group_.rested(world_.time.now(), out); });
  }
  for (const std::int32_t to : group_.lacking()) {
    group_.sent_values(to);
    world_.time.after(
        std::chrono::milliseconds(1), [this, to, epoch = group_.epoch(), step = group_.step()] {
          SimulatedMember& other = *members_[std::size_t(to)];
          other.drive(
              [&](Outbox& out) { other.group_.take_values(epoch, step, world_.time.now(), out); });
        });
  }
  if (in_step_ && group_.started()) {
    for (std::size_t b = 0; b < buckets().size(); ++b) turn(b);
  }
  apply_when_committed();
  user().changed();
}

void SimulatedMember::send(int to, SimulatedFrame frame) {
  world_.transport.send(streams_[std::size_t(to)], std::move(frame));
}

// Functions for what arrives.

void SimulatedMember::arrived(int from, std::vector<SimulatedFrame> frames) {
  for (SimulatedFrame& frame : frames) inbox_.push_back({from, std::move(frame)});
  if (!handles_) take_frames();
}

// The receiving thread adds arriving numbers to sums, or copies arriving sums.
void SimulatedMember::take_frames() {
  handles_ = !inbox_.empty();
  if (!handles_) return;
  std::vector<Arrived> some;
  SimulatedWork receiving, summing;
  std::size_t bytes = 0;
  while (!inbox_.empty() && bytes < kSimulatedTurnBytes) {
    const Arrived& first = inbox_.front();
    receiving.core_seconds +=
        world_.transport.receive_seconds(streams_in_[std::size_t(first.from)], first.frame);
    if (first.frame.type == MessageType::kPartialSum) {
      summing.bytes +=
          ((first.frame.flags & kFinalSum) != 0 ? 2.0 : 3.0) * double(first.frame.bytes);
    }
    bytes += first.frame.bytes;
    some.push_back(std::move(inbox_.front()));
    inbox_.pop_front();
  }
  machine().run(receiving, [this, summing, some = std::move(some)]() mutable {
    machine().run(summing, [this, some = std::move(some)] {
      for (const Arrived& each : some) handle(each.from, each.frame);
      take_frames();
    });
  });
}

void SimulatedMember::handle(int from, const SimulatedFrame& frame) {
  switch (frame.type) {
    case MessageType::kPartialSum:
      return take_partial(frame);
    case MessageType::kContributedRows:
      ++work_[frame.piece].there;
      return turn(frame.piece);
    case MessageType::kInPlace:
      ++(frame.flags == kSummedPart ? work_[frame.piece].summed : work_[frame.piece].there);
      return turn(frame.piece);
    default:
      break;
  }
  drive([&](Outbox& out) { group_.received(from, *frame.control, world_.time.now(), out); });
}

// Functions for steps.

bool SimulatedMember::may_begin(StepKind kind) {
  const bool all = group_.has_values() && int(group_.members().size()) == size();
  return all && (kind != StepKind::kTrain || group_.may_begin());
}

void SimulatedMember::begin_step(StepKind kind, int plan) {
  if (kind != StepKind::kTrain) return;
  plan_ = std::size_t(plan);
  work_.assign(buckets().size(), {});
  for (std::size_t b = 0; b < buckets().size(); ++b) {
    work_[b].not_ready = buckets()[b].variables.size();
  }
  left_ = buckets().size();
  commits_ = group_.commits();
  in_step_ = true;
  given_ = commit_ == nullptr;
  drive([&](Outbox& out) {
    group_.begin({.examples = 1, .own_step = made_, .made = made_}, world_.time.now(), out);
  });
  ++made_;
}

void SimulatedMember::ready(VariableId variable, const Done& done) {
  const std::size_t b = layouts_[plan_].bucket_of[std::size_t(variable)];
  if (b != kNowhere && --work_[b].not_ready == 0) turn(b);
  done();
}

void SimulatedMember::end_step(const Done& done) {
  ended_ = done;
  ended_at_ = world_.time.now();
  apply_when_committed();
}

void SimulatedMember::apply_when_committed() {
  if (ended_ == nullptr || group_.commits() == commits_ || !std::exchange(in_step_, false)) return;
  commit_ == nullptr ? apply() : commit_([this] { apply(); });
}

// Applies the rule to the sums; for sparse variables, to the rows of all members. A step that clips
// has read the sums before, for their norm.
void SimulatedMember::apply() {
  const TimePoint begun = world_.time.now();
  user().spent(&SpentSeconds::answer, seconds_of(begun - ended_at_));
  SimulatedWork work{.threads = world_.step.rule_threads};
  for (const VariableId v : world_.plans[plan_]) {
    work.rule_bytes += world_.use(v).rule_bytes * (world_.spec(v).sparse ? size() : 1);
  }
  for (std::size_t b = 0; world_.step.clipped && b < buckets().size(); ++b) {
    work.rule_bytes += double(bucket_bytes(b)) * (buckets()[b].sparse ? size() : 1);
  }
  machine().run(work, [this, begun, done = std::exchange(ended_, nullptr)] {
    user().spent(&SpentSeconds::rules, seconds_of(world_.time.now() - begun));
    done();
  });
}

// Functions for the reduction.

std::size_t SimulatedMember::bucket_bytes(std::size_t bucket) const {
  if (!buckets()[bucket].sparse) return buckets()[bucket].elements * sizeof(float);
  const VariableId v = buckets()[bucket].variables.front();
  const VariableSpec& spec = world_.spec(v);
  const auto rows = std::size_t(std::max<std::int64_t>(1, world_.use(v).most_rows));
  return rows * std::size_t(spec.shape.elements() / std::max<std::int64_t>(1, spec.shape[0])) *
         sizeof(float);
}

void SimulatedMember::reduce(const SimulatedWork& work, std::function<void()> done) {
  reductions_.push_back({work, std::move(done)});
  if (!reduces_) reduce_next();
}

void SimulatedMember::reduce_next() {
  reduces_ = !reductions_.empty();
  if (!reduces_) return;
  Reduction first = std::move(reductions_.front());
  reductions_.pop_front();
  machine().run(first.work, [this, done = std::move(first.done)] {
    done();
    reduce_next();
  });
}

void SimulatedMember::turn(std::size_t b) {
  if (!in_step_ || !group_.started()) return;
  Work& work = work_[b];
  if (work.whole || work.not_ready > 0) return;
  const bool sparse = buckets()[b].sparse;
  if (!std::exchange(work.begun, true)) {
    if (size() == 1) return note_whole(b);
    if (group_.in_place()) {
      announce(b, 0);
    } else if (sparse) {
      for (int to = 0; to < size(); ++to) {
        if (to == index_) continue;
        send(to, {.type = MessageType::kContributedRows,
                  .piece = std::uint32_t(b),
                  .bytes = bucket_bytes(b),
                  .wire_bytes = bucket_bytes(b)});
      }
    } else {
      scatter(b);
    }
  }
  if (!sparse && !group_.in_place()) return;
  if (work.there == size() - 1 && !std::exchange(work.reduced, true)) {
    // The member sums its part of a dense bucket, or all rows of a sparse bucket.
    const auto bytes = double(bucket_bytes(b));
    const double part = bytes / size();
    const double passed =
        sparse ? 3 * bytes * size() : world_.job.costs.bytes_to_sum(part, size()) + part;
    return reduce({.rule_bytes = passed}, [this, b, sparse] {
      if (sparse) return note_whole(b);
      announce(b, kSummedPart);
      if (work_[b].summed == size() - 1) note_whole(b);
    });
  }
  // A bucket is complete once all other members have summed their parts, and this member its own.
  if (!sparse && work.reduced && work.summed_bytes > 0 && work.summed == size() - 1) note_whole(b);
}

void SimulatedMember::announce(std::size_t b, std::uint16_t flags) {
  if (flags == kSummedPart) work_[b].summed_bytes = 1;
  for (int to = 0; to < size(); ++to) {
    if (to == index_) continue;
    send(to, {.type = MessageType::kInPlace, .flags = flags, .piece = std::uint32_t(b)});
  }
}

std::size_t SimulatedMember::segment_begin(std::size_t b, int number) const {
  const std::size_t lines = (bucket_bytes(b) + kLine - 1) / kLine;
  return std::min(lines * std::size_t(number) / std::size_t(size()) * kLine, bucket_bytes(b));
}

int SimulatedMember::segment_of(std::size_t b, std::size_t offset) const {
  for (int k = size() - 1; k > 0; --k) {
    if (offset >= segment_begin(b, k)) return k;
  }
  return 0;
}

// The member begins the sum of the segment that belongs to the previous member, and then adds its
// numbers to the partial sums that have arrived meanwhile.
void SimulatedMember::scatter(std::size_t b) {
  const int before = (index_ + size() - 1) % size();
  const std::size_t end = segment_begin(b, before + 1);
  for (std::size_t at = segment_begin(b, before); at < end; at += kRingBytes) {
    const std::size_t bytes = std::min(kRingBytes, end - at);
    reduce({.bytes = 3 * double(bytes)}, [this, b, at, bytes] {
      send(next(), {.type = MessageType::kPartialSum,
                    .piece = std::uint32_t(b),
                    .offset = at,
                    .bytes = bytes,
                    .wire_bytes = bytes});
    });
  }
  for (const SimulatedFrame& frame : std::exchange(work_[b].early, {})) {
    reduce({.bytes = 3 * double(frame.bytes)}, [this, b, frame] { add_and_pass_on(b, frame); });
  }
}

void SimulatedMember::take_partial(const SimulatedFrame& frame) {
  const std::size_t b = frame.piece;
  Work& work = work_[b];
  if ((frame.flags & kFinalSum) == 0) {
    if (!work.begun) return work.early.push_back(frame);
    return add_and_pass_on(b, frame);
  }
  if (next() != segment_of(b, frame.offset)) send(next(), frame);
  work.summed_bytes += frame.bytes;
  if (work.summed_bytes == bucket_bytes(b)) note_whole(b);
}

void SimulatedMember::add_and_pass_on(std::size_t b, const SimulatedFrame& frame) {
  SimulatedFrame on = frame;
  const bool final = segment_of(b, frame.offset) == index_;
  if (final) on.flags = kFinalSum;
  send(next(), on);
  if (!final) return;
  work_[b].summed_bytes += frame.bytes;
  if (work_[b].summed_bytes == bucket_bytes(b)) note_whole(b);
}

void SimulatedMember::note_whole(std::size_t b) {
  if (!std::exchange(work_[b].whole, true) && --left_ == 0) finish_sums();
}

void SimulatedMember::confirm_receipt() {
  given_ = true;
  finish_sums();
}

void SimulatedMember::finish_sums() {
  if (left_ > 0 || !given_) return;
  drive([&](Outbox& out) { group_.finish_sums(world_.time.now(), out); });
}

}  // namespace paceline
