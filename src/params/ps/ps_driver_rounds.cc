// PsDriver: synchronous rounds, and the connection to ps 0.
#include <algorithm>
#include <utility>

#include "params/ps/ps_driver.h"

namespace paceline {
namespace {

constexpr Duration kOneTry = std::chrono::seconds(1);

}  // namespace

void PsDriver::carry_out(Outbox::Decide decide) {
  const RoundDecision& decision = decide.decision;
  const auto is_late = [&](const RoundContribution& it) { return it.round < decision.round; };
  applied_ += std::int64_t(decision.contributors.size());
  late_ += std::ranges::count_if(decision.contributors, is_late) +
           std::ranges::count_if(decision.dropped, is_late);
  const std::int64_t every = options_.progress_every.steps;
  if (every > 0 && decision.closes && machine_.global_step() % every == 0) wake_();
  rounds_.push(*shard_, std::move(decide));
}

CoordinatorConnection& PsDriver::coordinator() {
  if (coordinator_ == nullptr) coordinator_ = std::make_unique<CoordinatorConnection>(*this);
  return *coordinator_;
}

void PsDriver::tell(const Outbox::Decide& decided) {
  drive([&](Outbox& out) {
    for (const auto& [to, step, done] : decided.told) {
      out.send(to, MessageType::kStepDone, done, step);
    }
    for (const auto& [to, round] : decided.open) {
      out.send(to, MessageType::kRoundOpen, {}, std::uint64_t(round));
    }
  });
}

void PsDriver::squares(const RoundSquares& squares) {
  drive([&](Outbox& out) { machine_.squares(squares, out); });
}

void PsDriver::from_coordinator(const ControlMessage& message) {
  drive([&](Outbox& out) { machine_.from_coordinator(message, now(), out); });
}

void PsDriver::coordinator_closed(std::uint64_t handled) {
  drive([&](Outbox&) { machine_.coordinator_closed(handled, now()); });
  wake_();
}

void PsDriver::fail(const std::exception_ptr& error) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_ == nullptr) failure_ = error;
  }
  wake_();
}

void PsDriver::connect_coordinator(Link& link) {
  CoordinatorConnection* to = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(connects_, false)) return;
    to = &coordinator();
  }
  try {
    to->connect(link, machine_.coordinator_address(),
                Deadline::after(kOneTry).or_when_readable(options_.stop_fd));
    drive([&](Outbox& out) { machine_.coordinator_connected(out); });
  } catch (const Error& error) {
    drive([&](Outbox&) { machine_.coordinator_failed(error.what(), now()); });
  }
}

}  // namespace paceline
