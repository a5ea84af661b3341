#include "params/worker/ps_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/copy_bytes.h"
#include "params/wire/rounded_floats.h"
#include "params/worker/worker_driver.h"

namespace paceline {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::kDataLoss, "[store] " + why);
}

}  // namespace

PsConnection::PsConnection(WorkerState& core, WorkerDriver& driver, int ps, std::string address)
    : core_(core),
      driver_(driver),
      ps_(ps),
      address_(std::move(address)),
      clock_(core.options().timeline, fmt::format("ps:{}", ps)),
      stream_(*this),
      inlet_(stream_) {
  if (core.options().timeline != nullptr) {
    core.options().timeline->name_peer(address_, fmt::format("ps:{}", ps));
  }
}

void PsConnection::connect(Link& link, Deadline deadline) {
  stream_.open(link.connect(address_, inlet_, deadline));
}

std::string PsConnection::name() const { return fmt::format("ps:{} at {}", ps_, address_); }

StoreLink PsConnection::link() const {
  return {.to = fmt::format("ps:{}", ps_),
          .kind = std::string(stream_.kind()),
          .round_trip = stream_.round_trip(),
          .bytes_sent = traffic().bytes_sent,
          .bytes_received = traffic().bytes_received,
          .encrypted = stream_.encrypted()};
}

std::string PsConnection::text() const {
  const std::int64_t steps = core_.steps_sent;
  const std::string step =
      steps == 0 ? "before the first step" : fmt::format("in step {}", steps - 1);
  const MessageType last = last_type_;
  return fmt::format("{} {}, last message {}", name(), step, name_of(last));
}

void PsConnection::send(MessageType type, FrameHeader header, std::span<const std::byte> payload,
                        void (*sent)(void*), void* context) {
  header.type = std::uint16_t(type);
  header.payload_bytes = std::uint32_t(payload.size());
  stream_.send(header, payload, sent, context);
}

void PsConnection::send_control(MessageType type, FrameHeader header,
                                ControlBuffers::Buffer& payload) {
  send(type, header, payload.bytes, &ControlBuffers::sent, &payload);
}

void PsConnection::send_small(MessageType type, std::span<const std::byte> payload) {
  ControlBuffers::Buffer& buffer = control_.take();
  buffer.bytes.assign(payload.begin(), payload.end());
  send_control(type, {}, buffer);
}

void PsConnection::send_job_control(const ControlMessage& message) {
  if (message.type == MessageType::kGoodbye) {
    const auto confirmed = [](void* connection) {
      PsConnection& self = *static_cast<PsConnection*>(connection);
      self.goodbye_confirmed_ = true;
      self.core_.notify();
    };
    return send(message.type, {}, {}, confirmed, this);
  }
  ControlBuffers::Buffer& buffer = job_control_.take();
  buffer.bytes = encode(message);
  send_control(message.type, {}, buffer);
}

// The connection sends the frames in order, so the buffer is free again once the last frame is
// sent.
void PsConnection::send_task_state(const TaskState& state, std::uint64_t save) {
  ControlBuffers::Buffer& buffer = control_.take();
  buffer.bytes = encode(state);
  for_state_frames(buffer.bytes, [&](std::uint16_t flags, std::span<const std::byte> frame) {
    const bool last = flags != kStateGoesOn;
    send(MessageType::kTaskState, {.flags = flags, .step = save}, frame,
         last ? &ControlBuffers::sent : nullptr, last ? &buffer : nullptr);
  });
}

void PsConnection::close(Deadline deadline) { stream_.close(deadline); }

const Piece& PsConnection::piece(std::uint32_t id) const {
  if (id >= core_.pieces().size() || core_.pieces()[id].ps != ps_) {
    refuse(fmt::format("piece {} is not on ps:{}", id, ps_));
  }
  return core_.pieces()[id];
}

// Returns the memory for the values of a frame. Rounded values take half as many bytes in the frame
// as in memory.
std::span<std::byte> PsConnection::place_values(const FrameHeader& header) {
  const Piece& target = piece(header.id);
  const std::span<std::byte> all = core_.value_of(target);
  const std::size_t bytes = std::size_t(header.payload_bytes) * (rounds_values(target) ? 2 : 1);
  const std::size_t whole = rounds_values(target) ? sizeof(float) : 1;
  if (header.offset > all.size() || bytes > all.size() - header.offset ||
      header.offset % whole != 0 || bytes % whole != 0) {
    refuse(fmt::format("values of {} bytes at {} of piece {}, which has {}", bytes, header.offset,
                       header.id, all.size()));
  }
  return all.subspan(header.offset, bytes);
}

// Returns the memory for the next value of a piece, which must arrive whole. If the value is no
// longer wanted, the memory is a buffer that nobody reads.
std::span<std::byte> PsConnection::place_next(const FrameHeader& header) {
  const Piece& target = piece(header.id);
  const std::size_t bytes = std::size_t(header.payload_bytes) * (rounds_values(target) ? 2 : 1);
  if (core_.pieces_of(target.variable).size() != 1 || header.offset != 0 ||
      bytes != core_.bytes_of(target) || bytes > kChunkBytes) {
    refuse(fmt::format("values of {} bytes at {} of piece {}, not all of it, asked for ahead",
                       bytes, header.offset, header.id));
  }
  next_ = core_.pulled(target.variable).place_of_next();
  if (next_.empty()) return place_small(header, kChunkBytes);
  return rounds_values(target) ? place_of_rounded(next_, values_wire()) : next_;
}

std::span<std::byte> PsConnection::place_small(const FrameHeader& header, std::size_t most_bytes) {
  if (header.payload_bytes > most_bytes) {
    refuse(fmt::format("{} of {} bytes is too long", name_of(MessageType{header.type}),
                       header.payload_bytes));
  }
  if (received_.size() < header.payload_bytes) received_.resize(header.payload_bytes);
  return std::span(received_).first(header.payload_bytes);
}

std::span<std::byte> PsConnection::place_payload(const FrameHeader& header) {
  const MessageType type{header.type};
  if (type == MessageType::kValues && (header.flags & kAskedAhead) != 0) return place_next(header);
  if (type == MessageType::kValues) {
    const std::span<std::byte> values = place_values(header);
    return rounds_values(piece(header.id)) ? place_of_rounded(values, values_wire()) : values;
  }
  if (type == MessageType::kState) {
    piece(header.id);
    return core_.reading().place(header);
  }
  if (type == MessageType::kMarked) {
    piece(header.id);
    return core_.save_inbox().place(header);
  }
  const bool rows = type == MessageType::kRowValues;
  return place_small(header, rows ? kMaxPayloadBytes : kMaxControlBytes);
}

void PsConnection::on_frame(const FrameHeader& header, std::span<const std::byte> payload) {
  const MessageType type{header.type};
  last_type_ = type;
  handle(type, header, payload);
}

// Maps memory that the ps shares. Before the ps agrees on the variables, and so before any step,
// this is the memory of the values; afterwards, it is that of this worker's copies.
void PsConnection::on_shared(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) {
  if (id != (declared_ ? kMemoryOfCopy : kMemoryOfValues)) {
    refuse(fmt::format("memory {} is shared, unasked", id));
  }
  if (!core_.options().share_memory) return;
  (declared_ ? core_.copies() : core_.shards()).map(ps_, std::move(memory));
}

// Checks for the frames of a step first, since most frames belong to steps.
void PsConnection::handle(MessageType type, const FrameHeader& header,
                          std::span<const std::byte> payload) {
  check_flags(header);
  switch (type) {
    case MessageType::kValues:
      return on_values(header);
    case MessageType::kRowValues:
      return on_row_values(header, payload);
    case MessageType::kTaken:
      return core_.take(piece(header.id));
    case MessageType::kCopied:
      return core_.copied(piece(header.id));
    case MessageType::kChanged:
      return core_.note_version(piece(header.id), header.step);
    case MessageType::kState:
      return on_state(header);
    case MessageType::kMarked:
      return core_.save_inbox().arrived(payload.size());
    case MessageType::kClock:
      return clock_.answered(header, stream_);
    case MessageType::kTaskState:
      return on_task_state(header, payload);
    default:
      return handle_control(type, header, payload);
  }
}

// Hands the answers to a save to the saving thread, progress to the progress board, and everything
// else to the state machine.
void PsConnection::handle_control(MessageType type, const FrameHeader& header,
                                  std::span<const std::byte> payload) {
  if (!is_control_for_worker(type)) refuse("unexpected message " + name_of(type));
  const ControlMessage message = decode_control(type, payload, header.step);
  if (type == MessageType::kFoundFile) {
    return core_.save_inbox().put_found(ps_, message.as<bool>());
  }
  if (type == MessageType::kSaved) {
    return core_.save_inbox().put_saved(ps_, header.step, message.as<SavedShard>());
  }
  if (type == MessageType::kAskProgress) return tell_progress();
  if (type == MessageType::kProgress) return hear_progress(message);
  if (type == MessageType::kDeclared) {
    for (const VariableId id : message.as<Declared>().changed_after_reads) {
      core_.note_changes_after_reads(id);
    }
    declared_ = true;
  }
  driver_.received(ps_, message);
  if (type != MessageType::kWelcome) return;
  stream_.go_on(message.as<Welcome>().handled);
  clock_.begin(stream_);
}

// Before the variables are initialised, this message tells a worker its own saved state. After
// that, it tells the chief the state of another worker.
void PsConnection::on_task_state(const FrameHeader& header, std::span<const std::byte> payload) {
  auto whole = state_frames_.add(header.flags, payload);
  if (!whole) return;
  if (driver_.initialised()) {
    return core_.save_inbox().put_state(decode_task_state(*whole), header.step);
  }
  driver_.received(
      ps_, {MessageType::kTaskState,
            std::make_shared<const std::vector<std::byte>>(std::move(*whole)), header.step});
}

// Asks the ps only once the ps has answered the previous question, so that questions do not pile up
// at a ps that stands still.
void PsConnection::ask_progress() {
  if (progress_asked_.exchange(true)) return;
  stream_.send_copy({.type = std::uint16_t(MessageType::kAskProgress)}, {});
}

void PsConnection::tell_progress() {
  ProgressBoard* const board = core_.options().progress;
  const std::vector<std::byte> text = encode_text(board == nullptr ? "" : board->asked());
  stream_.send_copy(
      {.payload_bytes = std::uint32_t(text.size()), .type = std::uint16_t(MessageType::kProgress)},
      text);
}

// The step in the message's header says whose progress the message tells: 0 is the ps itself, i + 1
// is worker i.
void PsConnection::hear_progress(const ControlMessage& message) {
  const std::size_t workers = core_.options().spec.workers.size();
  if (message.step > workers) refuse(fmt::format("the progress of worker:{}", message.step - 1));
  if (message.step == 0) progress_asked_ = false;
  ProgressBoard* const board = core_.options().progress;
  if (board == nullptr) return;
  board->heard(
      message.step == 0 ? fmt::format("ps:{}", ps_) : fmt::format("worker:{}", message.step - 1),
      message.as<std::string>());
}

void PsConnection::on_values(const FrameHeader& header) {
  if ((header.flags & kAskedAhead) != 0) return on_next_values(header);
  const Piece& target = piece(header.id);
  const std::span<std::byte> values = place_values(header);
  if (rounds_values(target)) widen_in_place(values, values_wire());
  if ((header.flags & kOfVersion) != 0) core_.note_held_version(target, header.step);
  core_.arrive(target, values.size());
}

void PsConnection::on_next_values(const FrameHeader& header) {
  const Piece& target = piece(header.id);
  if (header.payload_bytes == 0) refuse("values of 0 bytes, asked for ahead");
  const std::span<std::byte> next = std::exchange(next_, {});
  if (next.empty()) return core_.note_version(target, header.step);
  if (rounds_values(target)) widen_in_place(next, values_wire());
  core_.next_arrived(target, header.step);
}

// The frame has the ids of its rows, since the rows need not lie side by side in the variable.
void PsConnection::on_row_values(const FrameHeader& header, std::span<const std::byte> payload) {
  const Piece& target = piece(header.id);
  const std::size_t row = core_.row_bytes(target.variable);
  const std::size_t travels = rounds_values(target) ? row / 2 : row;
  std::uint32_t count = 0;
  if (payload.size() >= sizeof(count)) std::memcpy(&count, payload.data(), sizeof(count));
  if (payload.size() < sizeof(count) ||
      payload.size() - sizeof(count) != std::size_t(count) * (sizeof(std::int32_t) + travels)) {
    refuse(fmt::format("{} rows in {} bytes", count, payload.size()));
  }
  const std::byte* ids = payload.data() + sizeof(count);
  const std::byte* values = ids + std::size_t(count) * sizeof(std::int32_t);
  const std::span<std::byte> place = core_.value_of(target);
  for (std::uint32_t i = 0; i < count; ++i) {
    std::int32_t id = 0;
    std::memcpy(&id, ids + i * sizeof(id), sizeof(id));
    const std::int64_t at = id - target.first_row;
    if (at < 0 || at >= target.rows)
      refuse(fmt::format("row {} is not in piece {}", id, header.id));
    if (row == 0) continue;
    const std::span<std::byte> to = place.subspan(std::size_t(at) * row, row);
    const bool rounded = travels != row;
    copy_bytes((rounded ? place_of_rounded(to, values_wire()) : to).data(), values + i * travels,
               travels);
    if (rounded) widen_in_place(to, values_wire());
  }
  core_.arrive(target, std::size_t(count) * row);
}

void PsConnection::on_state(const FrameHeader& header) {
  if (core_.reading().arrived(ps_, header)) core_.notify();
}

void PsConnection::on_closed(const Error& error) {
  const WorkerTask::Ended ended = {.where = text(),
                                   .handled = stream_.handled(),
                                   .all_confirmed = stream_.all_confirmed(),
                                   .broken = stream_.broken()};
  switch (driver_.closed(ps_, error, ended)) {
    case WorkerTask::Closed::kStranger:
      return core_.fail(
          {ErrorCode::kUnavailable,
           fmt::format("ps:{} at {} accepts connections but does not speak Paceline: {}", ps_,
                       address_, error.what())});
    case WorkerTask::Closed::kLost:
      return core_.fail({ErrorCode::kAborted, fmt::format("lost {}: {}", text(), error.what())});
    default:
      return core_.notify();
  }
}

}  // namespace paceline
