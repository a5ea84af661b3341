#include "params/ps/round_applier.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "base/denormals.h"
#include "params/protocol/frame_cuts.h"
#include "params/ps/common_values.h"
#include "params/ps/ps_driver.h"
#include "params/shard/not_finite.h"
#include "params/variable_arrays.h"

namespace paceline {
namespace {

// The part of a sum of squares that one thread adds up. It depends on nothing but the length, so
// that the sum has the same bits with any number of threads.
constexpr std::size_t kSquaresElements = std::size_t{1} << 16;

}  // namespace

void RoundApplier::keep(int worker, std::uint64_t incarnation, KeptContribution contribution) {
  const std::lock_guard lock(mutex_);
  kept_[{worker, incarnation}] = std::move(contribution);
}

void RoundApplier::push(Shard& shard, Outbox::Decide decide) {
  const std::lock_guard lock(mutex_);
  if (shard_ == nullptr) shard_ = &shard;
  waiting_.emplace_back(std::move(decide));
}

void RoundApplier::push(const RoundScale& scale) {
  const std::lock_guard lock(mutex_);
  scale_ = scale;
}

void RoundApplier::push(std::function<void()> act) {
  const std::lock_guard lock(mutex_);
  waiting_.emplace_back(std::move(act));
}

// Only a thread that runs calls it, with the lock.
std::optional<RoundApplier::Work> RoundApplier::next() {
  if (awaits_scale_) {
    if (!scale_ || scale_->round != now_.decision.round) return {};
    awaits_scale_ = false;
    return [this, scale = scale_->scale] { finish(scale); };
  }
  if (waiting_.empty()) return {};
  Work work = std::move(waiting_.front());
  waiting_.pop_front();
  return work;
}

void RoundApplier::run() {
  std::unique_lock lock(mutex_);
  if (running_) return;
  running_ = true;
  while (std::optional<Work> work = next()) {
    lock.unlock();
    try {
      if (auto* const decide = std::get_if<Outbox::Decide>(&*work)) {
        begin(std::move(*decide));
      } else {
        std::get<std::function<void()>> (*work)();
      }
    } catch (...) {
      driver_.fail(std::current_exception());
    }
    lock.lock();
  }
  running_ = false;
}

void RoundApplier::take(std::span<const RoundContribution> named,
                        std::vector<KeptContribution>& taken) {
  const std::lock_guard lock(mutex_);
  taken.clear();
  for (const RoundContribution& it : named) {
    const auto found = kept_.find({it.worker, it.incarnation});
    if (found == kept_.end() || found->second.step->step() != it.step) continue;
    taken.push_back(std::move(found->second));
    kept_.erase(found);
  }
}

void RoundApplier::begin(Outbox::Decide decide) {
  now_ = std::move(decide);
  const RoundDecision& decision = now_.decision;
  take(decision.contributors, contributors_);
  take(decision.displaced, dropped_);  // nobody is there to be answered
  take(decision.dropped, dropped_);
  if (contributors_.size() != decision.contributors.size()) {
    throw Error(
        ErrorCode::kInternal,
        fmt::format("[ps] round {} counts contributions that are not here", decision.round));
  }
  row_means_.resize(shard_->size());
  means_.resize(shard_->size());
  if (contributors_.empty() || decision.contributors.front().clip_norm <= 0) return finish(1);
  double squares = 0;
  for (std::size_t position = 0; position < shard_->size(); ++position) {
    squares += sum(position);
  }
  awaits_scale_ = true;
  driver_.squares({decision.round, squares});
}

std::vector<MeanPart> RoundApplier::parts(std::size_t position) const {
  std::vector<MeanPart> parts;
  std::int64_t examples = 0;
  std::vector<std::int64_t> weights;
  for (std::size_t i = 0; i < contributors_.size(); ++i) {
    if (!contributors_[i].entries[position].contributed) continue;
    const IncomingPiece& piece = contributors_[i].step->piece(position);
    parts.push_back(
        {.gradient = reinterpret_cast<const float*>(piece.gradient.data()), .rows = piece.rows});
    weights.push_back(now_.decision.contributors[i].examples);
    examples += weights.back();
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].weight =
        examples > 0 ? float(double(weights[i]) / double(examples)) : 1.0f / float(parts.size());
  }
  return parts;
}

// Writes the mean of the contributions to a piece; returns the sum of its squares.
double RoundApplier::sum(std::size_t position) {
  const std::vector<MeanPart> parts = this->parts(position);
  if (parts.empty()) return 0;
  ShardPiece& piece = shard_->at(position);
  const bool counts = piece.variable().rule.takes_gradient();
  if (piece.variable().sparse) {
    RowMean& mean = row_means_[position];
    write_row_mean(parts, piece.row_bytes() / sizeof(float), mean);
    return counts ? sum_of_squares(mean.values) : 0;
  }
  Buffer& memory = means_[position];
  if (memory.size() < piece.bytes()) memory = Buffer(piece.bytes());
  const std::span mean(reinterpret_cast<float*>(memory.span().data()),
                       piece.bytes() / sizeof(float));
  const std::size_t cuts = (mean.size() + kSquaresElements - 1) / kSquaresElements;
  std::vector<double> squares(cuts);
  const DenseMean dense(parts);
  shard_->pool().for_ranges(std::int64_t(cuts), 1, [&](std::int64_t from, std::int64_t to) {
    for (std::size_t cut = std::size_t(from); cut < std::size_t(to); ++cut) {
      const std::size_t first = cut * kSquaresElements;
      const auto some = mean.subspan(first, std::min(kSquaresElements, mean.size() - first));
      dense.write(first, some);
      squares[cut] = sum_of_squares(some);
    }
  });
  double sum = 0;
  for (const double part : squares) sum += part;
  return counts ? sum : 0;
}

// A worker to which too much waits to be sent reads too slowly: its connection ends, and no other
// one's.
template <typename F>
void RoundApplier::for_kept(F&& act) {
  for (auto* list : {&contributors_, &dropped_}) {
    for (const KeptContribution& kept : *list) {
      try {
        act(kept);
      } catch (const Error&) {
        kept.replies->close(Deadline::after(Duration()));
      }
    }
  }
}

// The workers begin their next step with the end of the round, and values follow it: the first are
// read while the others travel.
void RoundApplier::finish(float scale) {
  const bool clipped = !contributors_.empty() && now_.decision.contributors.front().clip_norm > 0;
  for (std::size_t position = 0; position < shard_->size(); ++position) {
    if (now_.decision.closes) {
      const TimelineScope event(driver_.timeline(), driver_.label(position));
      const TimePoint began = driver_.now();
      const FlushDenormals flush;
      apply(position, scale, clipped);
      driver_.account().add_apply(driver_.now() - began);
    }
    for_kept([&](const KeptContribution& kept) { hand_back(kept, position); });
  }
  for_kept([](const KeptContribution& kept) { kept.step->end(); });
  driver_.account().contribution_at(driver_.now());
  driver_.tell(now_);
  for (std::size_t position = 0; position < shard_->size(); ++position) send_values(position);
  contributors_.clear();
  dropped_.clear();
}

// The learning rate is that of the first worker that contributes: in rounds all go in step.
void RoundApplier::apply(std::size_t position, float scale, bool clipped) {
  const std::vector<MeanPart> parts = this->parts(position);
  if (parts.empty()) return;
  ShardPiece& piece = shard_->at(position);
  const VariableSpec& spec = piece.variable();
  const auto first = std::ranges::find_if(contributors_, [&](const KeptContribution& kept) {
    return kept.entries[position].contributed;
  });
  const std::int64_t count = piece.begin_contribution();
  const RuleStep step{.learning_rate = first->step->learning_rate(piece.where().variable),
                      .clip_scale = scale,
                      .weight_decay = spec.weight_decay,
                      .count = count,
                      .average_decay = average_decay_at(spec, count),
                      .must_be_finite = first->step->must_be_finite()};
  if (!clipped && (spec.sparse || spec.rule.whole())) sum(position);
  try {
    apply_mean(position, step, parts, clipped);
  } catch (const NotFinite& of_mean) {
    driver_.refuse_all(blame(position, of_mean).what());
  }
  piece.end_contribution();
}

void RoundApplier::apply_mean(std::size_t position, const RuleStep& step,
                              std::span<const MeanPart> parts, bool clipped) {
  ShardPiece& piece = shard_->at(position);
  const VariableSpec& spec = piece.variable();
  const RowMean& rows = row_means_[position];
  if (spec.sparse) {
    if (!rows.rows.empty()) piece.apply_rows(step, rows.rows, rows.values.data());
  } else if (clipped || spec.rule.whole()) {
    piece.apply(step, 0, means_[position].span().first(piece.bytes()), {});
  } else {
    piece.apply_mean(step, parts);
  }
}

// Finds the contribution that has made the mean what it is.
Error RoundApplier::blame(std::size_t position, const NotFinite& of_mean) const {
  for (const KeptContribution& kept : contributors_) {
    if (!kept.entries[position].contributed) continue;
    const std::span<const std::byte> gradient = kept.step->piece(position).gradient;
    try {
      check_finite(
          of_mean.variable(), 0,
          {reinterpret_cast<const float*>(gradient.data()), gradient.size() / sizeof(float)});
    } catch (const NotFinite& own) {
      const std::size_t at = std::size_t(&kept - contributors_.data());
      return own.of(fmt::format("worker:{}", now_.decision.contributors[at].worker),
                    kept.step->step());
    }
  }
  return of_mean;
}

// The memory of a contribution is its worker's again, and the worker's copy of the values is new.
void RoundApplier::hand_back(const KeptContribution& kept, std::size_t position) {
  if (!kept.entries[position].contributed) return;
  ShardPiece& piece = shard_->at(position);
  const StepAssembly::Part& part = kept.step->part(position);
  if (part.wanted == WantedValues::kInItsCopy && kept.copy != nullptr) {
    piece.copy(0, shard_->place_of(position, kept.copy->bytes()));
  }
  if (part.shared) kept.replies->tell(MessageType::kTaken, piece.where().id, kept.number);
}

// All workers get the same values: one copy of each part serves them all.
void RoundApplier::send_values(std::size_t position) {
  ShardPiece& piece = shard_->at(position);
  for (const Cut part : byte_cuts(piece.bytes())) {
    CommonValues values(piece, part, *common_blocks_);
    for_kept([&](const KeptContribution& kept) {
      if (kept.in_frames[position]) kept.replies->answer_values(values, kept.number);
    });
  }
  for_kept([&](const KeptContribution& kept) {
    kept.replies->send_rows(piece, kept.entries[position].next_rows, kept.number);
  });
}

}  // namespace paceline
