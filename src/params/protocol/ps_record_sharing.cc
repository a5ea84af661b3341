#include "params/protocol/ps_record_sharing.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "paceline/error.h"

namespace paceline {
namespace {

// A wish for more records than this is refused: no honest worker has one.
constexpr std::int64_t kMostRecords = std::int64_t{1} << 32;
// A block has at most 1 / kSlowest of the worker's equal share of the remaining records. So even a
// worker that is kSlowest times slower than the others ends together with them.
constexpr std::int64_t kSlowest = 4;

[[noreturn]] void refuse_records(const std::string& why) {
  throw Error(ErrorCode::kDataLoss, "[ps] " + why);
}

}  // namespace

PsRecordSharing::PsRecordSharing(int workers, bool waits)
    : waits_(waits), workers_(std::size_t(workers)) {}

void PsRecordSharing::restore(RecordSet unused) { left_ = std::move(unused); }

PsRecordSharing::Worker* PsRecordSharing::find(int worker, std::uint64_t incarnation) {
  if (worker < 0 || std::size_t(worker) >= workers_.size()) return nullptr;
  Worker& found = workers_[std::size_t(worker)];
  return found.incarnation == incarnation ? &found : nullptr;
}

PsRecordSharing::Worker* PsRecordSharing::find_here(int worker, std::uint64_t incarnation) {
  Worker* const found = find(worker, incarnation);
  return found != nullptr && found->here ? found : nullptr;
}

void PsRecordSharing::joined(int worker, std::uint64_t incarnation, Answers& answers) {
  Worker& its = workers_[std::size_t(worker)];
  if (its.here && its.incarnation == incarnation) return;
  give_back(its);
  its = {};
  its.incarnation = incarnation;
  its.here = true;
  answer_waiting(answers);
}

void PsRecordSharing::ask(int worker, std::uint64_t incarnation, const RecordWish& wish,
                          Answers& answers) {
  if (wish.records < (wish.starves ? 0 : 1) || wish.records > kMostRecords || wish.limit < 0 ||
      left_.ranges().back().first > RecordSet::kMost - kMostRecords) {
    refuse_records(
        fmt::format("worker:{} asks for {} records below {}", worker, wish.records, wish.limit));
  }
  Worker* const its = find_here(worker, incarnation);
  if (its == nullptr) return;
  const std::int64_t before = its->waiting ? its->waiting->records : 0;
  if (wish.starves && before == 0) return;  // the answer is under way
  its->starves = wish.starves;
  its->waiting = wish;
  if (!wish.starves) its->of_block = wish.records;
  its->waiting->records = std::min(before + wish.records, kMostRecords);
  answer_waiting(answers);
}

bool PsRecordSharing::anybody_holds(std::int64_t below) const {
  return std::ranges::any_of(workers_, [&](const Worker& worker) {
    if (worker.starves || worker.done_training) return false;
    return std::ranges::any_of(worker.held,
                               [&](const RecordRange& range) { return range.first < below; });
  });
}

std::int64_t PsRecordSharing::left_below(std::int64_t limit) const {
  std::int64_t left = 0;
  for (const RecordRange& range : left_.ranges()) {
    left += std::max<std::int64_t>(std::min(range.end, limit) - range.first, 0);
  }
  return left;
}

std::int64_t PsRecordSharing::piece_of(const Worker& worker, const RecordWish& wish) const {
  const bool several_steps = worker.of_step > 0 && worker.of_block > worker.of_step;
  const auto here = std::ranges::count(workers_, true, &Worker::here);
  const std::int64_t part = left_below(wish.limit) / (kSlowest * std::int64_t(here));
  if (!several_steps || part >= wish.records) return wish.records;
  if (worker.given - worker.reads >= worker.of_step) return 0;
  return std::min(std::max(part, worker.of_step), wish.records);
}

// If the next records are not contiguous, answers a wish with several ranges. If fewer records
// remain than the wish asks for, gives what remains. The rest of the wish waits, unless the worker
// is told that there are no more.
bool PsRecordSharing::try_answer(int index, Worker& worker, RecordWish& wish, Answers& answers) {
  Answer answer{.worker = index, .given = {}};
  bool later = false;
  while (wish.records > 0) {
    const std::int64_t piece = piece_of(worker, wish);
    later = piece == 0;
    const RecordRange next = later ? RecordRange() : left_.take(piece, wish.limit);
    if (next.size() == 0) break;
    answer.given.ranges.push_back(next);
    worker.starves = false;
    wish.records -= next.size();
    worker.given += next.size();
    if (!worker.held.empty() && worker.held.back().end == next.first) {
      worker.held.back().end = next.end;
    } else {
      worker.held.push_back(next);
    }
  }
  const bool whole = wish.records == 0 && !answer.given.ranges.empty();
  answer.given.over = !whole && !later && !(waits_ && anybody_holds(wish.limit));
  const bool answered = whole || answer.given.over;
  if (answered || !answer.given.ranges.empty()) answers.push_back(std::move(answer));
  return answered;
}

void PsRecordSharing::answer_waiting(Answers& answers) {
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = workers_[i];
    if (!worker.waiting) continue;
    if (try_answer(int(i), worker, *worker.waiting, answers)) worker.waiting.reset();
  }
}

void PsRecordSharing::reads(int worker, std::uint64_t incarnation, std::int64_t step,
                            std::int64_t records, Answers& answers) {
  Worker* const its = find_here(worker, incarnation);
  if (its == nullptr) return;
  if (records > its->given || records < its->reads) {
    refuse_records(fmt::format("step {} of worker:{} reads up to record {} of {} that it was given",
                               step, worker, records, its->given));
  }
  its->step = step;
  if (records > its->reads) its->of_step = records - its->reads;
  its->reads = records;
  answer_waiting(answers);
}

void PsRecordSharing::end_step(Worker& worker, std::int64_t step, bool used) {
  if (worker.step < 0 || worker.step > step) return;
  while (worker.done < worker.reads) {
    RecordRange& first = worker.held.front();
    const std::int64_t count = std::min(first.size(), worker.reads - worker.done);
    if (!used) left_.add({first.first, first.first + count});
    first.first += count;
    worker.done += count;
    if (first.size() == 0) worker.held.pop_front();
  }
}

void PsRecordSharing::counted(int worker, std::uint64_t incarnation, std::int64_t step,
                              Answers& answers) {
  Worker* const its = find(worker, incarnation);
  if (its == nullptr) return;
  end_step(*its, step, true);
  answer_waiting(answers);
}

void PsRecordSharing::in_vain(int worker, std::uint64_t incarnation, std::int64_t step,
                              Answers& answers) {
  Worker* const its = find(worker, incarnation);
  if (its == nullptr) return;
  end_step(*its, step, false);
  answer_waiting(answers);
}

void PsRecordSharing::give_back(Worker& worker, std::int64_t but_for) {
  std::deque<RecordRange> kept;
  for (RecordRange range : worker.held) {
    const RecordRange keeps{range.first, range.first + std::min(range.size(), but_for)};
    if (keeps.size() > 0) kept.push_back(keeps);
    but_for -= keeps.size();
    left_.add({keeps.end, range.end});
  }
  worker.held = std::move(kept);
  worker.waiting.reset();
  worker.here = false;
}

void PsRecordSharing::set_done(int worker, std::uint64_t incarnation, Answers& answers) {
  Worker* const its = find_here(worker, incarnation);
  if (its == nullptr) return;
  its->done_training = true;
  answer_waiting(answers);
}

void PsRecordSharing::left(int worker, std::uint64_t incarnation, bool may_count,
                           Answers& answers) {
  Worker* const its = find(worker, incarnation);
  if (its == nullptr) return;
  if (!may_count) its->reads = its->done;
  give_back(*its, its->reads - its->done);
  answer_waiting(answers);
}

RecordSet PsRecordSharing::unused() const {
  RecordSet unused = left_;
  for (const Worker& worker : workers_) {
    for (const RecordRange& range : worker.held) unused.add(range);
  }
  return unused;
}

}  // namespace paceline
