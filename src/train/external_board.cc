#include "train/external_board.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include "base/copy_bytes.h"
#include "base/row_count.h"
#include "paceline/error.h"
#include "params/weighted_sum.h"

namespace paceline {
namespace {

constexpr std::chrono::milliseconds kCheckEvery{250};
constexpr std::int64_t kCopyGrain = 256 * 1024;  // the least number of bytes that is worth a thread

std::string type_in_words(const TensorView& view) {
  return ValueType{view.dtype, view.shape}.str();
}

// Returns the elements of a row: the product of all dimensions but dimension 0.
std::size_t elements_of_row(const Shape& shape) {
  std::size_t elements = 1;
  for (const std::int64_t dim : shape.dims().subspan(1)) elements *= std::size_t(dim);
  return elements;
}

double cpu_seconds_of_process() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

}  // namespace

ExternalBoard::ExternalBoard(std::vector<ExternalVariable> variables,
                             std::function<void()> check_wait, bool takes_at_end)
    : variables_(std::move(variables)),
      check_wait_(std::move(check_wait)),
      takes_at_end_(takes_at_end),
      shown_(variables_.size()),
      handed_(variables_.size()) {
  times_.needed.resize(variables_.size());
  times_.handed_over.resize(variables_.size());
}

const ExternalVariable& ExternalBoard::variable(int index) const {
  if (index >= 0 && std::size_t(index) < variables_.size()) return variables_[std::size_t(index)];
  throw Error(ErrorCode::kNotFound,
              fmt::format("[store] there is no variable {}: it has {}", index, variables_.size()));
}

void ExternalBoard::open(std::vector<std::int64_t> rows) {
  const std::lock_guard lock(mutex_);
  for (std::size_t v = 0; v < shown_.size(); ++v) {
    shown_[v] = {.rows = rows[v]};
    handed_[v].there = handed_[v].taken = false;
  }
  opened_ = clock_.now();
  if (++steps_ == kUntimed + 1) timed_from_ = {opened_, cpu_seconds_of_process()};
  open_ = true;
  ending_ = false;
  changed_.notify_all();
}

void ExternalBoard::note_time(ExternalTimes::OfSteps& of) {
  if (steps_ <= kUntimed || steps_ > kUntimed + kTimed) return;
  of.push_back(std::chrono::duration<double>(clock_.now() - opened_).count());
}

// The time between two steps counts, too: loading data keeps cores busy as computing does.
void ExternalBoard::note_busy_cores() {
  if (steps_ <= kUntimed || steps_ > kUntimed + kTimed) return;
  const double seconds = std::chrono::duration<double>(clock_.now() - timed_from_.at).count();
  if (seconds <= 0) return;
  times_.busy_cores = (cpu_seconds_of_process() - timed_from_.cpu_seconds) / seconds;
}

ExternalTimes ExternalBoard::times() const {
  const std::lock_guard lock(mutex_);
  return times_;
}

bool ExternalBoard::is_open() const { return open_; }

void ExternalBoard::show(int variable, const TensorView& value) {
  const std::lock_guard lock(mutex_);
  Shown& shown = shown_[std::size_t(variable)];
  shown.value = value;
  if (shown.rows >= 0) shown.value.shape = with_rows(value.shape, shown.rows);
  shown.there = true;
  changed_.notify_all();
}

bool ExternalBoard::is_there(int variable) const {
  return handed_[std::size_t(variable)].there && (!takes_at_end_ || ending_);
}

bool ExternalBoard::wait_for_gradient(Lock& lock, int variable) {
  changed_.wait(lock, [&] { return is_there(variable) || ending_ || abandoned_; });
  if (abandoned_) throw Error(ErrorCode::kCancelled, *abandoned_);
  return is_there(variable);
}

std::size_t ExternalBoard::first_handed_over(std::size_t count,
                                             const std::function<int(std::size_t)>& variable_at) {
  std::size_t first = count;
  Lock lock(mutex_);
  changed_.wait(lock, [&] {
    for (first = 0; first < count; ++first) {
      if (is_there(variable_at(first))) return true;
    }
    return ending_ || abandoned_.has_value();
  });
  return first < count ? first : 0;
}

// Drops the owner outside the lock, since freeing the gradient's memory may take long.
void ExternalBoard::release(int variable) {
  Handed& handed = handed_[std::size_t(variable)];
  std::shared_ptr<const void> owner;
  const std::lock_guard lock(mutex_);
  handed.taken = true;
  owner.swap(handed.owner);
}

void ExternalBoard::take(int variable, const KernelCall& call) {
  const TensorView& to = call.outputs[0];
  Lock lock(mutex_);
  const bool there = wait_for_gradient(lock, variable);
  const TensorView from = handed_[std::size_t(variable)].gradient;
  lock.unlock();
  // The gradient's owner is released once the step has ended.
  if (there && call.lent != nullptr) {
    *call.lent = from.data;
    return;
  }
  const auto copy = [&](std::int64_t begin, std::int64_t end) {
    std::byte* const at = to.as<std::byte>() + begin;
    if (there) {
      copy_bytes(at, from.as<std::byte>() + begin, std::size_t(end - begin));
    } else {
      std::memset(at, 0, std::size_t(end - begin));
    }
  };
  call.parallel_for(std::int64_t(to.bytes()), kCopyGrain, copy);
  release(variable);
}

void ExternalBoard::take_rows(int variable, const KernelCall& call) {
  Lock lock(mutex_);
  const bool there = wait_for_gradient(lock, variable);
  const Handed& handed = handed_[std::size_t(variable)];
  lock.unlock();
  const std::size_t row = elements_of_row(call.outputs[1].shape);
  std::vector<WeightedRows> members;
  for (std::size_t i = 0; there && i < handed.ids.size(); ++i) {
    members.push_back({1, {&handed.ids[i], 1}, handed.gradient.as<float>() + i * row});
  }
  sum_rows(members, row, ids_, rows_);
  std::memset(call.outputs[0].data, 0, call.outputs[0].bytes());
  std::memset(call.outputs[1].data, 0, call.outputs[1].bytes());
  copy_bytes(call.outputs[0].data, ids_.data(), ids_.size() * sizeof(std::int32_t));
  copy_bytes(call.outputs[1].data, rows_.data(), rows_.size() * sizeof(float));
  *call.outputs[2].as<std::int32_t>() = std::int32_t(ids_.size());
  release(variable);
}

double ExternalBoard::take_loss() {
  Lock lock(mutex_);
  changed_.wait(lock, [&] { return ending_ || abandoned_; });
  if (abandoned_) throw Error(ErrorCode::kCancelled, *abandoned_);
  return loss_;
}

void ExternalBoard::close(std::exception_ptr error) {
  std::vector<std::shared_ptr<const void>> owners;
  const std::lock_guard lock(mutex_);
  for (Handed& handed : handed_) owners.push_back(std::move(handed.owner));
  open_ = false;
  if (!error_) error_ = std::move(error);
  changed_.notify_all();
}

void ExternalBoard::check_locked() const {
  if (error_) std::rethrow_exception(error_);
}

void ExternalBoard::check() const {
  const std::lock_guard lock(mutex_);
  check_locked();
}

void ExternalBoard::check_open(const char* call, int variable) const {
  check_locked();
  if (open_ && !ending_) return;
  throw Error(ErrorCode::kFailedPrecondition,
              fmt::format("[store] {} of '{}' outside a step: begin_step comes first", call,
                          variables_[std::size_t(variable)].name));
}

TensorView ExternalBoard::need(int index) {
  const ExternalVariable& asked = variable(index);
  Shown& shown = shown_[std::size_t(index)];
  {
    const std::lock_guard lock(mutex_);
    check_open("need", index);
    if (!std::exchange(shown.asked, true)) note_time(times_.needed[std::size_t(index)]);
    if (asked.most_rows > 0 && shown.rows < 0) {
      throw Error(
          ErrorCode::kFailedPrecondition,
          fmt::format("[store] need of '{}', of which begin_step named no rows", asked.name));
    }
  }
  wait([&] { return shown.there || !open_; });
  const std::lock_guard lock(mutex_);
  check_open("need", index);
  return shown.value;
}

void ExternalBoard::check_gradient(int index, std::span<const std::int32_t> ids,
                                   const TensorView& gradient, bool by_rows) const {
  const ExternalVariable& of = variable(index);
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[store] the gradient of '{}' {}", of.name, why));
  };
  if (of.frozen) refuse("is not wanted: the variable is frozen");
  if (by_rows != (of.most_rows > 0)) {
    refuse(by_rows ? "has rows, and the variable is updated as a whole"
                   : "has no ids of rows, and the variable is updated by rows");
  }
  const Shape& all = of.initial.shape();
  const Shape wanted = by_rows ? with_rows(all, std::int64_t(ids.size())) : all;
  if (gradient.dtype != of.initial.dtype() || !(gradient.shape == wanted)) {
    refuse(fmt::format("is {}, and must be {}", type_in_words(gradient),
                       ValueType{of.initial.dtype(), wanted}.str()));
  }
  if (!by_rows) return;
  if (std::int64_t(ids.size()) > of.most_rows) {
    refuse(fmt::format("has {} rows, and the variable was made for {} in a step at most",
                       ids.size(), of.most_rows));
  }
  const auto bad =
      std::ranges::find_if(ids, [&](std::int32_t id) { return id < 0 || id >= all[0]; });
  if (bad != ids.end()) refuse(fmt::format("has row {}, and the variable has {}", *bad, all[0]));
}

void ExternalBoard::hand_over(int index, std::span<const std::int32_t> ids,
                              const TensorView& gradient, bool by_rows,
                              std::shared_ptr<const void> owner) {
  check_gradient(index, ids, gradient, by_rows);
  const std::lock_guard lock(mutex_);
  check_open("ready", index);
  Handed& handed = handed_[std::size_t(index)];
  if (handed.there) {
    throw Error(ErrorCode::kFailedPrecondition,
                fmt::format("[store] the second gradient of '{}' in one step: add them up before",
                            variables_[std::size_t(index)].name));
  }
  note_time(times_.handed_over[std::size_t(index)]);
  handed.there = true;
  handed.gradient = gradient;
  handed.ids.assign(ids.begin(), ids.end());
  handed.owner = std::move(owner);
  if (!takes_at_end_) changed_.notify_all();
}

void ExternalBoard::end(std::optional<double> loss) {
  const std::lock_guard lock(mutex_);
  check_locked();
  if (!open_ || ending_) {
    throw Error(ErrorCode::kFailedPrecondition, "[store] end_step outside a step");
  }
  note_time(times_.ended);
  note_busy_cores();
  ending_ = true;
  if (loss) loss_ = *loss;
  changed_.notify_all();
}

void ExternalBoard::abandon(const std::string& why) {
  const std::lock_guard lock(mutex_);
  abandoned_ = why;
  changed_.notify_all();
}

void ExternalBoard::wait(const std::function<bool()>& done) {
  Lock lock(mutex_);
  while (!changed_.wait_for(lock, kCheckEvery, done)) {
    if (!check_wait_) continue;
    lock.unlock();
    check_wait_();
    lock.lock();
  }
}

void ExternalBoard::wait_quietly(const std::function<bool()>& done) {
  Lock lock(mutex_);
  changed_.wait(lock, done);
}

void ExternalBoard::change(const std::function<void()>& by) {
  const std::lock_guard lock(mutex_);
  by();
  changed_.notify_all();
}

}  // namespace paceline
