#include "params/worker/worker_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "params/variable_arrays.h"

namespace paceline {

namespace {

int num_ps(const PsStoreOptions& options) { return int(options.spec.ps.size()); }

}  // namespace

WorkerState::WorkerState(std::vector<VariableSpec> variables, const PsStoreOptions& options)
    : variables_(std::move(variables)),
      pieces_(place_variables(variables_, num_ps(options))),
      options_(options),
      shards_(variables_, pieces_, num_ps(options)),
      copies_(variables_, pieces_, num_ps(options)),
      spaces_(variables_.size()),
      arrivals_(pieces_.size()),
      changes_after_reads_(variables_.size()),
      save_inbox_(num_ps(options)) {
  for (const VariableSpec& variable : variables_) {
    row_bytes_.push_back(paceline::row_bytes(variable));
    values_.emplace_back(variable);
  }
  for (ContributionBuffer& space : spaces_) space.wakeup = &wakeup_;
  for (const Piece& piece : pieces_) {
    if (piece.first_row == 0 && first_piece_.size() == std::size_t(piece.variable)) {
      first_piece_.push_back(piece.id);
    }
  }
  first_piece_.push_back(pieces_.size());
}

std::span<const Piece> WorkerState::pieces_of(VariableId variable) const {
  const std::size_t first = first_piece_[std::size_t(variable)];
  return std::span(pieces_).subspan(first, first_piece_[std::size_t(variable) + 1] - first);
}

std::span<std::byte> WorkerState::value_of(const Piece& piece) const {
  if (!pulled(piece.variable).held()) {
    throw Error(ErrorCode::kDataLoss, fmt::format("[store] values of piece {}, unasked", piece.id));
  }
  const std::size_t row = row_bytes(piece.variable);
  return {static_cast<std::byte*>(value(piece.variable).raw()) + std::size_t(piece.first_row) * row,
          std::size_t(piece.rows) * row};
}

void WorkerState::expect(const Piece& piece, std::size_t bytes) {
  arrivals_[piece.id].expected += std::int64_t(bytes);
}

void WorkerState::arrive(const Piece& piece, std::size_t bytes) {
  Arrival& arrival = arrivals_[piece.id];
  const std::int64_t arrived = arrival.arrived += std::int64_t(bytes);
  if (arrived >= arrival.expected) wakeup_.notify();
}

const Piece* WorkerState::missing(VariableId variable) const {
  for (const Piece& piece : pieces_of(variable)) {
    const Arrival& arrival = arrivals_[piece.id];
    if (arrival.arrived < arrival.expected) return &piece;
  }
  return nullptr;
}

void WorkerState::note_changes_after_reads(VariableId variable) {
  if (variable < 0 || std::size_t(variable) >= variables_.size()) {
    throw Error(ErrorCode::kDataLoss,
                fmt::format("[store] a ps changes variable {} of {}", variable, variables_.size()));
  }
  changes_after_reads_[std::size_t(variable)] = true;
}

void WorkerState::take(const Piece& piece) {
  ContributionBuffer& taken = space(piece.variable);
  if (taken.in_flight <= 0) {
    throw Error(ErrorCode::kDataLoss,
                fmt::format("[store] nothing of piece {} was to be taken", piece.id));
  }
  if (mapped(piece.variable) != nullptr) arrive(piece, 1);
  ContributionBuffer::sent(&taken);
}

void WorkerState::copied(const Piece& piece) {
  const Arrival& arrival = arrivals_[piece.id];
  if (arrival.arrived >= arrival.expected) {
    throw Error(ErrorCode::kDataLoss,
                fmt::format("[store] piece {} was copied, unasked", piece.id));
  }
  arrive(piece, 1);
}

void WorkerState::note_version(const Piece& piece, std::uint64_t version) {
  Arrival& arrival = arrivals_[piece.id];
  if (version > arrival.newest_version) arrival.newest_version = version;
}

void WorkerState::note_held_version(const Piece& piece, std::uint64_t version) {
  note_version(piece, version);
  arrivals_[piece.id].held_version = version;
}

bool WorkerState::changed(VariableId variable) const {
  return std::ranges::any_of(pieces_of(variable), [this](const Piece& piece) {
    const Arrival& arrival = arrivals_[piece.id];
    return arrival.newest_version > arrival.held_version;
  });
}

void WorkerState::next_arrived(const Piece& piece, std::uint64_t version) {
  arrivals_[piece.id].next_version = version;
  pulled(piece.variable).next_arrived();
  note_version(piece, version);
  wakeup_.notify();
}

bool WorkerState::next_is_newer(VariableId variable) const {
  if (!pulled(variable).next_came()) return false;
  const Arrival& arrival = arrivals_[pieces_of(variable).front().id];
  return arrival.next_version > arrival.held_version;
}

bool WorkerState::next_is_newest(VariableId variable) const {
  if (!pulled(variable).next_came()) return false;
  const Arrival& arrival = arrivals_[pieces_of(variable).front().id];
  return arrival.next_version >= arrival.newest_version;
}

void WorkerState::take_next(VariableId variable) {
  pulled(variable).take_next();
  Arrival& arrival = arrivals_[pieces_of(variable).front().id];
  arrival.held_version = arrival.next_version.load();
}

void WorkerState::fail(const Error& error) {
  {
    const std::lock_guard lock(error_mutex_);
    if (!error_) error_ = error;
  }
  failed_ = true;
  failure_.raise();
  wakeup_.notify();
  save_inbox_.wake();
}

void WorkerState::fail_late(const std::string& what, const std::string& whom) {
  const std::chrono::duration<double> timeout = options_.reply_timeout;
  const Error late(ErrorCode::kDeadlineExceeded,
                   fmt::format("{} within {:.0f} s {}", what, timeout.count(), whom));
  fail(late);
  check();  // the first error counts
  throw late;
}

void WorkerState::check() const {
  if (!failed_) return;
  const std::lock_guard lock(error_mutex_);
  throw Error(*error_);
}

PendingRead& WorkerState::start_read(std::span<const VariableId> variables) {
  auto read = std::make_unique<PendingRead>(variables_, pieces_, variables, num_ps(options_));
  reading_ = read.get();
  read_ = std::move(read);
  return *read_;
}

PendingRead& WorkerState::reading() const {
  PendingRead* const reading = reading_;
  if (reading == nullptr)
    throw Error(ErrorCode::kDataLoss, "[store] a state that nobody asked for");
  return *reading;
}

}  // namespace paceline
