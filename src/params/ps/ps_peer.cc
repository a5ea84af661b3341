#include "params/ps/ps_peer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/denormals.h"
#include "params/clock_questions.h"
#include "params/ps/ps_driver.h"
#include "params/shard/not_finite.h"

namespace paceline {

void PsPeer::fail(const std::string& why) { throw Error(ErrorCode::kDataLoss, "[ps] " + why); }

PsPeer::PsPeer(PsDriver& driver, PeerId id, std::shared_ptr<Connection> connection)
    : driver_(driver),
      id_(id),
      stream_(std::make_shared<ResumableConnection>(*this, this)),
      inlet_(*this),
      replies_(stream_) {
  stream_->open(std::move(connection));
}

PsPeer::~PsPeer() {
  replies_.drop();
  stream_->abandon();
}

void PsPeer::OwnInlet::on_closed(const Error& error) {
  Inlet::on_closed(error);
  peer_.driver_.let_go(peer_);
}

void PsPeer::take_connection_of(PsPeer& other) {
  other.inlet_.redirect(*stream_);
  stream_->open(other.stream_->release());
}

// True for values: to send them again, the ps reads them from the shard, so the stream keeps no
// copy.
bool PsPeer::makes(const FrameHeader& header) const {
  return MessageType{header.type} == MessageType::kValues;
}

void PsPeer::make(const FrameHeader& header, std::size_t bytes, Connection& to) {
  replies_.send_again(shard().at(shard().position(header.id)), header, bytes, to);
}

void PsPeer::identify(int worker) {
  worker_ = worker;
  task_ = fmt::format("worker:{}", worker);
  name_on_timeline();
}

void PsPeer::identify_ps(int ps) {
  task_ = fmt::format("ps:{}", ps);
  name_on_timeline();
}

void PsPeer::name_on_timeline() {
  if (driver_.timeline() != nullptr) driver_.timeline()->name_peer(stream_->peer(), task_);
}

std::string PsPeer::text() const {
  const std::string task = task_.empty() ? "somebody" : task_;
  const std::string step =
      last_step_ < 0 ? "before its first step" : fmt::format("in step {}", last_step_);
  return fmt::format("{} at {} {}, last message {}", task, stream_->peer(), step,
                     name_of(last_type_));
}

std::size_t PsPeer::most_payload(MessageType type) const {
  if (!greeted_) return type == MessageType::kHello ? kMaxHelloBytes : 0;
  return type == MessageType::kWrite ? kChunkBytes : kMaxControlBytes;
}

std::span<std::byte> PsPeer::place_payload(const FrameHeader& header) {
  frame_began_ = driver_.now();
  const MessageType type{header.type};
  if (greeted_ && type == MessageType::kChunk) return incoming().place(header);
  if (header.payload_bytes > most_payload(type)) {
    fail(fmt::format("{} of {} bytes {}", name_of(type), header.payload_bytes,
                     greeted_ ? "is too long" : "before a hello"));
  }
  if (messages_.bytes.size() < header.payload_bytes) messages_.bytes.resize(header.payload_bytes);
  return std::span(messages_.bytes).first(header.payload_bytes);
}

void PsPeer::on_frame(const FrameHeader& header, std::span<const std::byte> payload) {
  if (payload.empty()) frame_began_ = driver_.now();
  const MessageType type{header.type};
  if (!greeted_ && type != MessageType::kHello) fail(name_of(type) + " before a hello");
  last_type_ = type;
  if (ended_) fail(name_of(type) + " after a refusal");
  try {
    handle(type, header, payload);
  } catch (const NotFinite& error) {
    ended_ = true;
    driver_.refuse_all(error.of(task_, last_step_).what());
  } catch (const Error& error) {
    // The worker is told the reason; then its connection is closed.
    ended_ = true;
    driver_.refuse(*this, error.what());
  }
  driver_.account().add_handling(driver_.now() - frame_began_);
}

void PsPeer::handle(MessageType type, const FrameHeader& header,
                    std::span<const std::byte> payload) {
  check_flags(header);
  switch (type) {
    case MessageType::kWrite:
      return on_write(header, payload);
    case MessageType::kPull:
    case MessageType::kPullRows:
    case MessageType::kRead:
      return on_pull(header, payload);
    case MessageType::kPullNext:
      return on_pull_next(header);
    case MessageType::kOrder:
      return on_order(payload);
    case MessageType::kStepBegin:
      return on_step_begin(header, payload);
    case MessageType::kRowIds:
      return on_row_ids(header, payload);
    case MessageType::kChunk:
      return on_chunk(header);
    case MessageType::kContribution:
      return on_contribution(header, payload);
    case MessageType::kClip:
      return on_clip(header, payload);
    case MessageType::kReadDone:
      return on_read_done(header);
    case MessageType::kStepEnd:
      return on_step_end(header, payload);
    case MessageType::kReadMarked:
      return on_read_marked(header, payload);
    case MessageType::kTaskState:
      return on_task_state(header, payload);
    case MessageType::kAskClock:
      return tell_clock(header, *stream_);
    default:
      break;
  }
  if (!is_control_for_ps(type)) fail("unexpected message " + name_of(type));
  const ControlMessage message = decode_control(type, payload, header.step);
  if (type == MessageType::kHello) return on_hello(message);
  driver_.control(*this, message);
  if (type == MessageType::kAskProgress) driver_.tell_progress(*this);
}

void PsPeer::on_hello(const ControlMessage& message) {
  const bool again = greeted_;
  driver_.control(*this, message);
  ended_ = !is_member();
  if (ended_ || again) return;
  const Hello& hello = message.as<Hello>();
  replies_.set_wire(hello.wire);
  contributions_ = {hello.wire, hello.kept};
  incarnation_ = hello.incarnation;
  greeted_ = true;
  if (worker_ < 0) return;
  driver_.say(fmt::format("{} joined from {}", task_, stream_->peer()));
}

void PsPeer::hold_timeline(bool hold) {
  if (hold == holds_timeline_) return;
  holds_timeline_ = hold;
  hold ? driver_.timeline()->hold() : driver_.timeline()->let_go();
}

Shard& PsPeer::shard(bool initialised) {
  if (working_ != nullptr) return *working_;
  Shard& shard = driver_.shard_for(*this, initialised);
  if (!incoming_) {
    replies_.allow(shard);
    incoming_ = std::make_shared<IncomingStep>(shard, contributions_);
  }
  if (initialised) working_ = &shard;
  return shard;
}

IncomingStep& PsPeer::incoming() {
  if (!incoming_) shard();
  if (incoming_->kept()) fail("a step before the round of the last one is applied");
  return *incoming_;
}

void PsPeer::on_write(const FrameHeader& header, std::span<const std::byte> payload) {
  Shard& all = shard(false);
  if (worker_ != 0) fail("only the chief writes");
  ShardPiece& piece = all.at(all.position(header.id));
  const std::size_t bytes = header.flags < piece.arrays() ? piece.array_bytes(header.flags) : 0;
  if (header.offset > bytes || payload.size() > bytes - header.offset) {
    fail(fmt::format("write of {} bytes at {} of array {} of piece {}, which has {}",
                     payload.size(), header.offset, header.flags, header.id, bytes));
  }
  piece.write(header.flags, header.offset, payload);
}

void PsPeer::on_pull(const FrameHeader& header, std::span<const std::byte> payload) {
  Shard& all = shard();
  const MessageType type{header.type};
  if (type == MessageType::kPullRows) {
    ShardPiece& piece = all.at(all.position(header.id));
    decode_rows(payload, type, messages_.rows);
    return replies_.send_rows(piece, messages_.rows, header.step);
  }
  decode_pieces(payload, type, messages_.pieces);
  for (const std::uint32_t id : messages_.pieces) {
    ShardPiece& piece = all.at(all.position(id));
    if (type == MessageType::kPull && (header.flags & kIntoCopy) != 0) {
      renew_copy(all.position(id), header.step);
    } else if (type == MessageType::kPull && (header.flags & kTellChanges) != 0) {
      replies_.send_subscribed_values(piece);
    } else if (type == MessageType::kPull) {
      replies_.send_values(piece, header.step);
    } else {
      replies_.send_state(piece);
    }
  }
}

// If the worker has the present values, they are sent once they change. If the ps changes them
// after each read, that happens now, since the worker has read them.
void PsPeer::on_pull_next(const FrameHeader& header) {
  ShardPiece& piece = shard().at(shard().position(header.id));
  if (piece.bytes() > kChunkBytes) {
    fail(fmt::format("piece {} of {} bytes is asked for ahead, more than a frame holds", header.id,
                     piece.bytes()));
  }
  if (!piece.changes().subscribe_after(header.step, replies_))
    return replies_.send_values_ahead(piece);
  piece.was_read(ShardPiece::Reading::kFrames);
}

void PsPeer::on_order(std::span<const std::byte> payload) {
  decode_pieces(payload, MessageType::kOrder, messages_.pieces);
  for (const std::uint32_t id : messages_.pieces) shard().position(id);
  replies_.set_order(messages_.pieces);
}

void PsPeer::on_step_begin(const FrameHeader& header, std::span<const std::byte> payload) {
  shard();
  decode_step_begin(payload, messages_.step_begin);
  driver_.account().contribution_at(frame_began_);
  if (driver_.timeline() != nullptr) {
    driver_.timeline()->begin_step(steps_);
    hold_timeline(driver_.timeline()->shows(steps_++));
  }
  const std::int64_t step = std::int64_t(header.step);
  const bool reads_now = (header.flags & kReadsNow) != 0;
  IncomingStep& incoming = this->incoming();
  incoming.begin(step, messages_.step_begin,
                 driver_.begin_step(*this, step, reads_now, messages_.step_begin),
                 (header.flags & kMustBeFinite) != 0);
  last_step_ = step;
}

void PsPeer::on_row_ids(const FrameHeader& header, std::span<const std::byte> payload) {
  decode_rows(payload, MessageType::kRowIds, messages_.rows);
  incoming().set_rows(shard().position(header.id), std::int64_t(header.step), messages_.rows);
}

void PsPeer::on_chunk(const FrameHeader& header) {
  IncomingStep& step = incoming();
  const std::size_t position = shard().position(header.id);
  const StepAssembly::Arrival arrival = step.arrived(position, header);
  if (!arrival.apply) return;
  const std::span<const std::byte> gradient = step.piece(position).chunk;
  if (step.part(position).wanted == WantedValues::kInFrames) {
    answer(position, header.offset, apply_range(position, header.offset, gradient));
  } else {
    apply_unanswered(position, header.offset, gradient, {});
  }
  if (arrival.whole) step.applied(position);
}

void PsPeer::on_shared(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) {
  if (!greeted_ || id != shared_.size() || id >= kMostSharedMemories) {
    fail(fmt::format("memory {} is shared, unasked", id));
  }
  std::size_t bytes = memory->size();
  for (const auto& before : shared_) bytes += before->size();
  if (bytes > most_shared_bytes(shard(false).variables()))
    fail(fmt::format("memory {} is shared, more than contributions take: {} bytes", id, bytes));
  shared_.push_back(std::move(memory));
}

void PsPeer::on_contribution(const FrameHeader& header, std::span<const std::byte> payload) {
  const std::size_t number = header.flags / kMemoryNumber;
  if (number >= shared_.size()) fail(fmt::format("memory {} was not shared", number));
  decode_rows(payload, MessageType::kContribution, messages_.rows);
  IncomingStep& step = incoming();
  const std::size_t position = shard().position(header.id);
  const StepAssembly::Arrival arrival =
      step.arrived_in_shared_memory(position, shared_[number]->bytes(), header, messages_.rows);
  if (arrival.apply) apply_whole(position);
}

// The worker says that it has read the values in shared memory, since the ps cannot see that.
void PsPeer::on_read_done(const FrameHeader& header) {
  ShardPiece& piece = shard().at(shard().position(header.id));
  piece.was_read(ShardPiece::Reading::kInPlace);
}

void PsPeer::on_task_state(const FrameHeader& header, std::span<const std::byte> payload) {
  if (auto state = state_frames_.add(header.flags, payload)) {
    driver_.control(
        *this, {MessageType::kTaskState,
                std::make_shared<const std::vector<std::byte>>(std::move(*state)), header.step});
  }
}

void PsPeer::on_read_marked(const FrameHeader& header, std::span<const std::byte> payload) {
  const std::int64_t bytes = decode_number(payload, MessageType::kReadMarked);
  ShardPiece& piece = shard().at(shard().position(header.id));
  const std::size_t all = header.flags < piece.arrays() ? piece.array_bytes(header.flags) : 0;
  if (bytes < 0 || std::size_t(bytes) > kChunkBytes || header.offset > all ||
      std::size_t(bytes) > all - header.offset) {
    fail(fmt::format("{} bytes at {} of array {} of piece {}, which has {}, are asked for", bytes,
                     header.offset, header.flags, header.id, all));
  }
  if (worker_ != 0) fail("only the chief reads what is to be saved");
  ReplyBlocks::Lent block = replies_.take(std::size_t(bytes));
  const auto kept = piece.read_marked(header.flags, header.offset, std::size_t(bytes));
  std::ranges::copy(kept, block->span().begin());
  replies_.send_block(MessageType::kMarked,
                      {.flags = header.flags, .id = header.id, .offset = header.offset},
                      std::move(block));
}

void PsPeer::on_clip(const FrameHeader& header, std::span<const std::byte> payload) {
  incoming().clip(std::int64_t(header.step), decode_clip(payload));
}

void PsPeer::on_step_end(const FrameHeader& header, std::span<const std::byte> payload) {
  if (!incoming().open() || std::int64_t(header.step) != incoming_->step()) {
    fail(fmt::format("the end of step {}, which has not begun", header.step));
  }
  const StepEnd& end = messages_.step_end;
  decode_step_end(payload, messages_.step_end);
  if (incoming_->fate() == Fate::kKeep) {
    keep();
    return driver_.end_step(*this, incoming_->step(), Fate::kKeep, is_skipped(end.clip_scale));
  }
  if (is_skipped(end.clip_scale)) incoming_->skip();
  incoming_->clip_at_end(end.clip_scale);
  for (const StepEnd::Entry& entry : end.entries) {
    const std::size_t position = shard().position(entry.piece);
    if (entry.contributed) {
      incoming_->check_whole(position);
      apply_whole(position);
    }
    replies_.send_rows(shard().at(position), entry.next_rows, header.step);
  }
  incoming_->end();
  driver_.end_step(*this, incoming_->step(), incoming_->fate());
  driver_.account().contribution_at(driver_.now());
}

// From here on the step belongs to the RoundApplier.
void PsPeer::keep() {
  KeptContribution kept{.step = incoming_,
                        .memories = shared_,
                        .entries = std::vector<StepEnd::Entry>(shard().size()),
                        .copy = copy_,
                        .replies = &replies_,
                        .number = std::uint64_t(incoming_->step()),
                        .in_frames = std::vector<bool>(shard().size())};
  for (const StepEnd::Entry& entry : messages_.step_end.entries) {
    const std::size_t position = shard().position(entry.piece);
    if (entry.contributed) incoming_->check_whole(position);
    for (const std::int32_t row : entry.next_rows) {
      if (!shard().at(position).has_row(row)) fail(fmt::format("row {} is not here", row));
    }
    kept.entries[position] = entry;
    kept.in_frames[position] = entry.contributed &&
                               incoming_->part(position).wanted == WantedValues::kInFrames &&
                               !shard().at(position).variable().sparse;
  }
  incoming_->keep();
  driver_.rounds().keep(worker_, incarnation_, std::move(kept));
}

void PsPeer::on_closed(const Error& error) {
  if (!driver_.closed(*this, error)) finish();
}

void PsPeer::finish() {
  hold_timeline(false);
  replies_.drop();
  stream_->abandon();
  incoming_.reset();
  shared_.clear();
  copy_.reset();
  messages_ = {};
  state_frames_ = StateFrames();
}

// From here on: how the ps applies and answers a contribution that has arrived.

template <typename F>
void PsPeer::timed_apply(std::size_t position, F&& apply) {
  const TimelineScope event(driver_.timeline(), driver_.label(position));
  const TimePoint began = driver_.now();
  const FlushDenormals flush;
  ShardPiece::take_lock_wait();
  apply();
  const Duration applied = driver_.now() - began - ShardPiece::take_lock_wait();
  driver_.account().add_apply(std::max(Duration(0), applied));
}

ReplyBlocks::Lent PsPeer::apply_range(std::size_t position, std::size_t offset,
                                      std::span<const std::byte> gradient) {
  ShardPiece& piece = shard().at(position);
  ReplyBlocks::Lent block = replies_.take(gradient.size());
  if (incoming_->counts()) {
    timed_apply(position, [&] {
      piece.apply(incoming_->rule_step(position), offset, gradient, block->span());
    });
  } else {
    piece.copy(offset, block->span());
  }
  return block;
}

void PsPeer::answer(std::size_t position, std::size_t offset, ReplyBlocks::Lent values) {
  ShardPiece& piece = shard().at(position);
  const FrameHeader header{
      .id = piece.where().id, .offset = offset, .step = std::uint64_t(incoming_->step())};
  replies_.send_block(MessageType::kValues, header, replies_.rounded(piece, std::move(values)));
}

// Writes the present values of the piece into the worker's copy. The first call makes the copy.
void PsPeer::renew_copy(std::size_t position, std::uint64_t step) {
  ShardPiece& piece = shard().at(position);
  if (copy_ == nullptr) {
    copy_ = SharedMemory::create(shard().values()->size());
    if (!replies_.share(kMemoryOfCopy, copy_)) fail("a copy in memory, which is not shared");
  }
  piece.copy(0, place_in_copy(position));
  replies_.tell(MessageType::kCopied, piece.where().id, step);
}

std::span<std::byte> PsPeer::place_in_copy(std::size_t position) {
  if (copy_ == nullptr) fail("a copy that was not asked for cannot be renewed");
  return shard().place_of(position, copy_->bytes());
}

void PsPeer::apply_dense(std::size_t position) {
  const std::span<const std::byte> gradient = incoming_->piece(position).gradient;
  const WantedValues wanted = incoming_->part(position).wanted;
  if (wanted != WantedValues::kInFrames) {
    std::span<std::byte> copy;
    if (wanted == WantedValues::kInItsCopy) copy = place_in_copy(position);
    return apply_unanswered(position, 0, gradient, copy);
  }
  if (shard().at(position).variable().rule.whole()) return apply_and_answer_whole(position);
  for (const Cut cut : byte_cuts(gradient.size())) {
    answer(position, cut.begin,
           apply_range(position, cut.begin, gradient.subspan(cut.begin, cut.size)));
  }
}

void PsPeer::apply_unanswered(std::size_t position, std::size_t offset,
                              std::span<const std::byte> gradient, std::span<std::byte> copy) {
  ShardPiece& piece = shard().at(position);
  if (!incoming_->counts()) return piece.copy(offset, copy);
  timed_apply(position,
              [&] { piece.apply(incoming_->rule_step(position), offset, gradient, copy); });
}

void PsPeer::apply_and_answer_whole(std::size_t position) {
  ShardPiece& piece = shard().at(position);
  const std::span<const std::byte> gradient = incoming_->piece(position).gradient;
  if (incoming_->counts()) {
    timed_apply(position, [&] { piece.apply(incoming_->rule_step(position), 0, gradient, {}); });
  }
  for (const Cut cut : byte_cuts(gradient.size())) {
    ReplyBlocks::Lent block = replies_.take(cut.size);
    piece.copy(cut.begin, block->span());
    answer(position, cut.begin, std::move(block));
  }
}

void PsPeer::apply_whole(std::size_t position) {
  if (!incoming_->take_whole(position)) return;
  ShardPiece& piece = shard().at(position);
  const IncomingPiece& incoming = incoming_->piece(position);
  if (!piece.variable().sparse) {
    apply_dense(position);
  } else if (incoming_->counts() && !incoming.rows.empty()) {
    timed_apply(position, [&] {
      piece.apply_rows(incoming_->rule_step(position), incoming.rows,
                       reinterpret_cast<const float*>(incoming.gradient.data()));
    });
  }
  incoming_->applied(position);
  if (incoming_->part(position).shared) {
    replies_.tell(MessageType::kTaken, piece.where().id, std::uint64_t(incoming_->step()));
  }
}

}  // namespace paceline
