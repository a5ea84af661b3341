// Sums in the middle of a step, for --sync-batch-norm: batch norm needs the sums of n, x and x²
// over all parts of a batch in the forward pass, and two more in the backward pass.
//
// The executor hands the store's exchange() to kernels (KernelCall::exchange), and a batch norm
// kernel calls add_up(sums) on it; graph, plan and executor know no more of it. All parts make the
// same calls in the same order. Towers add up behind a barrier (TowerSums). Members of an
// all-reduce send each other their numbers (ExchangedSums), tagged with the attempt at the step.
//
// If the members change while one of them waits here, or for the commit after it, it throws
// RepeatStep: the executor makes the step again from begin_step on, of the same inputs. The group
// therefore forgets a step that was begun but not committed (repeats_steps); without such sums it
// would reduce the kept contributions again.
#include <fmt/format.h>

#include <cstring>
#include <functional>

#include "params/collective/collective_driver.h"

namespace paceline {

// The members have changed, and nobody commits what this worker has begun.
bool CollectiveDriver::must_repeat() const {
  return options_.sync_batch_norm && group_.begun_by(options_.task.index) == nullptr &&
         group_.commits() == begun_commits_ && group_.takes() == begun_takes_;
}

void CollectiveDriver::add_up(std::span<double> sums) {
  std::vector<std::int32_t> members;
  FrameHeader header{.type = std::uint16_t(MessageType::kExchangedSums)};
  const auto bytes = std::as_bytes(sums);
  header.payload_bytes = std::uint32_t(bytes.size());
  {
    const std::lock_guard lock(mutex_);
    if (must_repeat()) throw RepeatStep();
    members = group_.members();
    header.step = begun_tag_;
    header.id = exchanged_.give(begun_tag_, sums);
  }
  for (const std::int32_t member : members) {
    if (member != options_.task.index) send_copy(member, header, bytes);
  }
  enum class State { kWaits, kWhole, kRepeats, kOver } state = State::kWaits;
  const auto ready = [&] {
    const std::lock_guard lock(mutex_);
    state = must_repeat()                    ? State::kRepeats
            : exchanged_.whole(members)      ? State::kWhole
            : group_.epoch() != begun_epoch_ ? State::kOver
                                             : State::kWaits;
    return state != State::kWaits;
  };
  wait_in_step(std::cref(ready));
  if (state == State::kRepeats) throw RepeatStep();
  if (state == State::kOver) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("[all-reduce] {}: a worker was lost whose sums a step lacks that was "
                            "committed",
                            options_.task.str()));
  }
  const std::lock_guard lock(mutex_);
  exchanged_.sum(members, sums);
}

void CollectiveDriver::take_sums(int worker, const FrameHeader& header,
                                 std::span<const std::byte> payload) {
  if (payload.size() % sizeof(double) != 0) {
    throw Error(ErrorCode::kDataLoss, fmt::format("[all-reduce] sums of {} bytes", payload.size()));
  }
  std::vector<double> numbers(payload.size() / sizeof(double));
  if (!numbers.empty()) std::memcpy(numbers.data(), payload.data(), payload.size());
  {
    const std::lock_guard lock(mutex_);
    exchanged_.take(worker, header.step, header.id, numbers);
  }
  wakeup_.notify();
}

}  // namespace paceline
