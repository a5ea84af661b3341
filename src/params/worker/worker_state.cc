#include "params/worker/worker_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/row_count.h"
#include "paceline/error.h"
#include "params/shard/layout.h"
#include "params/variable_arrays.h"

namespace paceline {

template <typename F>
void SaveInbox::change(F&& function) {
  {
    const std::lock_guard lock(mutex_);
    function();
    ++changes_;
  }
  changed_.notify_all();
}

void SaveInbox::wake() {
  change([] {});
}

void SaveInbox::begin(std::uint64_t save) {
  change([&] {
    save_ = save;
    saved_.assign(saved_.size(), {});
    states_.clear();
  });
}

void SaveInbox::put_found(int ps, bool found) {
  change([&] { found_[std::size_t(ps)] = found; });
}

void SaveInbox::put_saved(int ps, std::uint64_t save, SavedShard shard) {
  change([&] {
    if (save == save_) saved_[std::size_t(ps)] = std::move(shard);
  });
}

void SaveInbox::put_state(TaskState state, std::uint64_t save) {
  change([&] {
    if (save == save_) states_.push_back(std::move(state));
  });
}

std::vector<std::optional<bool>> SaveInbox::found() const {
  const std::lock_guard lock(mutex_);
  return found_;
}

std::vector<std::optional<SavedShard>> SaveInbox::saved() const {
  const std::lock_guard lock(mutex_);
  return saved_;
}

std::vector<TaskState> SaveInbox::states() const {
  const std::lock_guard lock(mutex_);
  return states_;
}

void SaveInbox::expect(std::uint32_t piece, std::uint16_t array, std::size_t first,
                       std::span<std::byte> memory) {
  change([&] {
    expected_ = {piece, array, first, memory};
    missing_ = memory.size();
  });
}

std::span<std::byte> SaveInbox::place(const FrameHeader& header) {
  const std::lock_guard lock(mutex_);
  const Expected& expected = expected_;
  if (header.id != expected.piece || header.flags != expected.array ||
      header.offset < expected.first || header.payload_bytes > missing_ ||
      header.offset - expected.first > expected.memory.size() - header.payload_bytes) {
    throw Error(ErrorCode::kDataLoss, fmt::format("[store] {} bytes at {} of piece {}, unasked",
                                                  header.payload_bytes, header.offset, header.id));
  }
  return expected.memory.subspan(header.offset - expected.first, header.payload_bytes);
}

void SaveInbox::arrived(std::size_t bytes) {
  change([&] { missing_ -= std::min(bytes, missing_); });
}

std::size_t SaveInbox::missing() const {
  const std::lock_guard lock(mutex_);
  return missing_;
}

namespace {

VariableState empty_state(VariableId variable, const VariableSpec& spec) {
  VariableState state{.variable = variable, .value = Tensor(spec.dtype, spec.shape), .slots = {}};
  for (const SlotSpec& slot : slots_of(spec)) {
    state.slots.emplace_back(slot.scalar ? DType::kInt64 : DType::kFloat32,
                             slot.scalar ? Shape{1} : spec.shape);
  }
  return state;
}

}  // namespace

PendingRead::PendingRead(std::span<const VariableSpec> specs, std::span<const Piece> pieces,
                         std::span<const VariableId> asked, int num_ps)
    : other_scalars_(pieces.size()), arrays_(pieces.size()), owed_(std::size_t(num_ps)) {
  std::vector<int> index(specs.size(), -1);
  for (const VariableId variable : asked) {
    index.at(std::size_t(variable)) = int(states_.size());
    states_.push_back(empty_state(variable, specs[std::size_t(variable)]));
  }
  for (const Piece& piece : pieces) {
    const int at = index[std::size_t(piece.variable)];
    if (at < 0) continue;
    expect(piece, specs[std::size_t(piece.variable)], states_[std::size_t(at)]);
  }
}

void PendingRead::expect(const Piece& piece, const VariableSpec& spec, VariableState& state) {
  const std::size_t row = row_bytes(spec);
  const auto rows_of = [&](const Tensor& tensor) -> std::span<std::byte> {
    return {static_cast<std::byte*>(tensor.raw()) + std::size_t(piece.first_row) * row,
            std::size_t(piece.rows) * row};
  };
  std::vector<Array>& arrays = arrays_[piece.id];
  arrays.push_back({rows_of(state.value)});
  const std::vector<SlotSpec> slots = slots_of(spec);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (!slots[i].scalar) {
      arrays.push_back({rows_of(state.slots[i])});
    } else if (piece.first_row == 0) {
      arrays.push_back({std::as_writable_bytes(state.slots[i].data<std::int64_t>())});
    } else {
      arrays.push_back({std::as_writable_bytes(std::span(other_scalars_).subspan(piece.id, 1))});
    }
  }
  for (const Array& array : arrays) {
    owed_[std::size_t(piece.ps)] += std::int64_t(array.memory.size());
    missing_ += std::int64_t(array.memory.size());
  }
}

std::span<std::byte> PendingRead::place(const FrameHeader& header) {
  if (header.id >= arrays_.size() || header.flags >= arrays_[header.id].size()) {
    throw Error(ErrorCode::kDataLoss, "[store] a state that nobody asked for");
  }
  const auto& [memory, arrived] = arrays_[header.id][header.flags];
  if (header.offset != arrived || header.payload_bytes > memory.size() - arrived) {
    throw Error(
        ErrorCode::kDataLoss,
        fmt::format("[store] state of {} bytes at {} of piece {}, of which {} of {} came",
                    header.payload_bytes, header.offset, header.id, arrived, memory.size()));
  }
  return memory.subspan(arrived, header.payload_bytes);
}

bool PendingRead::arrived(int ps, const FrameHeader& header) {
  const std::int64_t bytes = header.payload_bytes;
  arrays_[header.id][header.flags].arrived += std::size_t(bytes);
  owed_[std::size_t(ps)] -= bytes;
  return (missing_ -= bytes) <= 0;
}

int PendingRead::first_missing() const {
  const auto owes = [](const auto& bytes) { return bytes > 0; };
  const auto first = std::ranges::find_if(owed_, owes);
  return first == owed_.end() ? 0 : int(first - owed_.begin());
}

void PulledValue::allocate() {
  if (held_) return;
  memories_.front() = Tensor(spec_.dtype, spec_.shape);
  held_ = true;
}

void PulledValue::ask_next() {
  Tensor& back = memories_[std::size_t(1 - front_)];
  if (!back.defined()) back = Tensor(spec_.dtype, spec_.shape);
  next_ = Next::kAsked;
}

void PulledValue::take_next() {
  PACELINE_CHECK(next_came());
  front_ = 1 - front_;
  next_ = Next::kUnasked;
}

std::span<std::byte> PulledValue::place_of_next() const {
  if (!next_asked()) return {};
  const Tensor& back = memories_[std::size_t(1 - front_)];
  return {static_cast<std::byte*>(back.raw()), back.bytes()};
}

void PulledValue::next_arrived() {
  Next asked = Next::kAsked;
  next_.compare_exchange_strong(asked, Next::kCame);
}

// On one host a shard's values lie in shared memory that workers map read-only, and the shard reads
// a worker's contributions where they lie: only headers and the ids of rows go over the link. A
// variable that is split over several ps tasks is cut between pages if the size of its rows allows
// that, and its pieces are mapped into one range of addresses. Otherwise the worker puts the
// variable together from frames.
//
// An asynchronous reader may see some elements before and some after another worker's update. If
// others may contribute in the middle of a step, and more than one kernel of the step reads a
// variable, the kernels read a copy, since forward and backward kernels must see one value. Without
// the copy, another worker's update fell between the forward and the backward kernels of each step:
// ptb with two workers and learning rate 1 ended at perplexity 640 instead of 115.
//
// The ps keeps the copy for this worker alone. It writes the copy in the pass that applies the
// worker's contribution, while the new values are in a cache. So the worker sees the values that it
// would get in frames.

static_assert(kSplitPageBytes == ContiguousMapping::kPageBytes,
              "variables are cut where parts of them can be mapped");

MappedShards::MappedShards(std::span<const VariableSpec> variables, std::span<const Piece> pieces,
                           int num_ps)
    : variables_(variables),
      pieces_(pieces),
      counts_(variables.size()),
      memories_(std::size_t(num_ps)),
      joined_(variables.size()),
      mapped_(variables.size()) {
  for (const Piece& piece : pieces_) ++counts_[std::size_t(piece.variable)];
}

void MappedShards::map(int ps, std::shared_ptr<const SharedMemory> memory) {
  const ShardLayout layout = shard_layout(variables_, pieces_, ps);
  if (memory->size() < layout.bytes) {
    throw Error(ErrorCode::kDataLoss, fmt::format("[store] {} bytes are shared for values of {}",
                                                  memory->size(), layout.bytes));
  }
  const std::lock_guard lock(mutex_);
  if (memories_[std::size_t(ps)] != nullptr) {
    throw Error(ErrorCode::kDataLoss, fmt::format("[store] ps:{} shares its memory twice", ps));
  }
  for (const Piece& piece : pieces_) {
    const std::size_t v = std::size_t(piece.variable);
    if (piece.ps != ps) continue;
    const std::byte* const start = memory->bytes().data();
    if (counts_[v] == 1) {
      mapped_[v] = start + layout.offsets[piece.id];
    } else if (can_be_joined(variables_, pieces_, piece.variable)) {
      map_part(piece, memory, layout.offsets[piece.id]);
    }
  }
  memories_[std::size_t(ps)] = std::move(memory);
}

// Maps one piece. The whole variable is mapped once all ps tasks that keep a piece of it have
// shared their memory, which only ps tasks of this host can do.
void MappedShards::map_part(const Piece& piece, const std::shared_ptr<const SharedMemory>& memory,
                            std::size_t offset) {
  const std::size_t v = std::size_t(piece.variable), row = row_bytes(variables_[v]);
  Joined& joined = joined_[v];
  if (joined.memory == nullptr) {
    joined.memory =
        std::make_unique<ContiguousMapping>(std::size_t(row_count(variables_[v].shape)) * row);
  }
  joined.memory->map(std::size_t(piece.first_row) * row, memory, offset,
                     piece_bytes(variables_[v], piece));
  if (++joined.pieces == counts_[v]) mapped_[v] = joined.memory->data();
}

void ContributionBuffer::use_own_memory(DType dtype, const Shape& shape) {
  const auto tensor = std::make_shared<Tensor>(dtype, shape);
  values = tensor->view();
  owner_ = tensor;
  shared.reset();
}

void ContributionBuffer::use(const std::shared_ptr<SharedMemory>& memory, Place place, DType dtype,
                             const Shape& shape) {
  values = {memory->bytes().data() + place.offset, dtype, shape};
  owner_ = memory;
  shared = place;
}

void ContributionBuffer::sent(void* context) {
  ContributionBuffer& space = *static_cast<ContributionBuffer*>(context);
  // The wakeup is read first: once in_flight is 0, the space may be used again.
  Wakeup* const wakeup = space.wakeup;
  if (--space.in_flight == 0) wakeup->notify();
}

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
