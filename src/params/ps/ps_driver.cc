#include "params/ps/ps_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/cores.h"
#include "base/denormals.h"
#include "base/failure_text.h"
#include "checkpoint/checkpoint_save.h"
#include "paceline/error.h"
#include "params/job_control.h"
#include "params/protocol/frame_cuts.h"
#include "params/protocol/placement.h"
#include "params/ps/common_values.h"
#include "params/ps/ps_peer.h"
#include "params/shard/not_finite.h"
#include "params/shard/rule_label.h"
#include "params/shard/saved_variables.h"
#include "params/variable_arrays.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

// How long a save waits for a moment at which no contribution to a piece is being applied. After
// that the save keeps the piece as it is, although some contributions may have changed only some of
// its regions.
constexpr Duration kWaitForNoneUnderWay = std::chrono::milliseconds(500);

bool holds(const FindFile& file) {
  std::error_code error;
  if (!fs::is_regular_file(file.path, error) ||
      fs::file_size(file.path, error) != file.content.size() || error) {
    return false;
  }
  std::ifstream stream(file.path, std::ios::binary);
  std::string content(file.content.size(), '\0');
  stream.read(content.data(), std::streamsize(content.size()));
  return bool(stream) && content == file.content;
}

}  // namespace

ShardSaver::~ShardSaver() {
  cancelled_ = true;
  if (thread_.joinable()) thread_.join();
}

void ShardSaver::start(std::function<void()> work) {
  if (thread_.joinable()) thread_.join();  // the thread is not busy
  busy_ = true;
  thread_ = std::thread([work = std::move(work)] {
    run_in_background();
    work();
  });
}

bool ShardSaver::find(const FindFile& file, Shard& shard) {
  const std::lock_guard lock(mutex_);
  const bool found = sees_files_ && holds(file);
  folder_ = found ? fs::path(file.path).parent_path().string() : "";
  if (busy_) return found;
  makes_room_ = true;
  start([this, &shard] {
    try {
      for (std::size_t i = 0; i < shard.size() && !cancelled_; ++i) {
        shard.at(i).snapshot().make_room();
      }
    } catch (const std::exception&) {
      // mark() tries again to make this memory. If that fails, too, the connection of the chief
      // ends.
    }
    busy_ = false;
  });
  return found;
}

void ShardSaver::mark(Shard& shard, const SavedShard& what) {
  const std::lock_guard lock(mutex_);
  if (makes_room_ && thread_.joinable()) thread_.join();
  makes_room_ = false;
  refused_ = busy_;
  if (refused_) return;
  what_ = what;
  // A chief may ask for a shard before it has asked for any file, so the memory for copies may not
  // exist yet.
  for (std::size_t i = 0; i < shard.size(); ++i) shard.at(i).snapshot().make_room();
  for (std::size_t i = 0; i < shard.size(); ++i) shard.at(i).mark();
}

std::string ShardSaver::why_not(const std::string& path) const {
  if (refused_) return "the last save is still under way";
  const bool outside =
      folder_.empty() || !path.starts_with(folder_ + "/") || path.find("/../") != std::string::npos;
  if (!path.empty() && outside) return path + " is not in the folder of checkpoints";
  return "";
}

void ShardSaver::write(Shard& shard, const std::string& path,
                       std::function<void(const SavedShard&)> done) {
  const std::lock_guard lock(mutex_);
  if (const std::string why = why_not(path); !why.empty()) {
    SavedShard refused;
    refused.error = why;
    return done(refused);
  }
  start([this, &shard, path, done = std::move(done)] {
    const SavedShard saved = write_now(shard, path);
    // Set before the chief hears of this save, since the chief may then ask for the next save.
    busy_ = false;
    done(saved);
  });
}

SavedShard ShardSaver::write_now(Shard& shard, const std::string& path) {
  SavedShard saved = what_;
  try {
    const Deadline deadline = Deadline::after(kWaitForNoneUnderWay);
    for (std::size_t i = 0; i < shard.size(); ++i) shard.at(i).wait_marked(deadline);
    if (path.empty()) return saved;
    // This ps does not know the number of shards: the chief has put it into the name of the file.
    // write_shard accepts any number above this ps's index.
    const WrittenFile file = write_shard(
        path, shard.variables(), shard.all_pieces(), shard.ps(), shard.ps() + 1,
        [&](const Piece& piece, std::size_t array, std::size_t offset, std::size_t bytes) {
          if (cancelled_) throw Error(ErrorCode::kCancelled, "this ps ends");
          return shard.at(shard.position(piece.id)).read_marked(array, offset, bytes);
        });
    saved.bytes = file.bytes;
    saved.checksum = file.checksum;
  } catch (const std::exception& error) {
    saved.error = failure_text(error);
  }
  for (std::size_t i = 0; i < shard.size(); ++i) shard.at(i).snapshot().drop();
  return saved;
}

namespace {

// How many numbers one thread squares and adds up at a time. This count never depends on the number
// of threads, so the sum always has the same bits.
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

// Only the thread that runs the rounds calls this function, and it holds the lock.
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
  take(decision.displaced, dropped_);  // discarded: no worker waits for an answer
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

// Writes the mean of the contributions to a piece. Returns the sum of the mean's squares, or 0 if
// the rule takes no gradient.
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

// Calls act for every kept contribution. If act fails because too many replies wait for a worker,
// that worker reads too slowly, and only its connection ends.
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

// Workers begin their next step when they hear that the round has ended. So that message goes
// before the values, and workers read the first values while the others still travel.
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

// The learning rate is that of the first contributor: in rounds all workers are at the same step.
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

// Finds the contribution whose NaN or infinity is in the mean. Returns `of_mean` if all
// contributions are finite, and only their sum is not.
Error RoundApplier::blame(std::size_t position, const NotFinite& of_mean) const {
  const ShardPiece& piece = shard_->at(position);
  const bool sparse = piece.variable().sparse;
  const auto row_elements = std::int64_t(piece.row_bytes() / sizeof(float));
  for (const KeptContribution& kept : contributors_) {
    if (!kept.entries[position].contributed) continue;
    const IncomingPiece& sent = kept.step->piece(position);
    const std::span<const float> gradient = {reinterpret_cast<const float*>(sent.gradient.data()),
                                             sent.gradient.size() / sizeof(float)};
    try {
      if (sparse) {
        check_rows_finite(of_mean.variable(), sent.rows, row_elements, gradient.data());
      } else {
        check_finite(of_mean.variable(), piece.where().first_row * row_elements, gradient);
      }
    } catch (const NotFinite& own) {
      const std::size_t at = std::size_t(&kept - contributors_.data());
      return own.of(fmt::format("worker:{}", now_.decision.contributors[at].worker),
                    kept.step->step());
    }
  }
  return of_mean;
}

// Renews the worker's copy of the values if the worker wants them there, and says that the worker's
// shared memory for the contribution is free again (kTaken).
void RoundApplier::hand_back(const KeptContribution& kept, std::size_t position) {
  if (!kept.entries[position].contributed) return;
  ShardPiece& piece = shard_->at(position);
  const StepAssembly::Part& part = kept.step->part(position);
  if (part.wanted == WantedValues::kInItsCopy && kept.copy != nullptr) {
    piece.copy(0, shard_->place_of(position, kept.copy->bytes()));
  }
  if (part.shared) kept.replies->tell(MessageType::kTaken, piece.where().id, kept.number);
}

// All workers get the same values, so one copy of each part serves them all.
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

void PsAccount::contribution_at(TimePoint now) {
  const std::int64_t time = now.time_since_epoch().count();
  std::int64_t none = 0;
  first_ns_.compare_exchange_strong(none, time);
  last_ns_ = std::max(last_ns_.load(), time);
}

// Frames of several connections overlap, and only a few threads handle them, so their waits can add
// up to more than all time. The share of the queue is therefore limited to the rest of the time.
PsAccount::Shares PsAccount::shares(int threads) const {
  const double wall = double(last_ns_ - first_ns_);
  if (wall <= 0) return {};
  const double all = wall * std::max(threads, 1);
  Shares shares;
  shares.seconds = wall * 1e-9;
  shares.apply = std::min(1.0, double(apply_ns_) / all);
  const double queue = double(handling_ns_ - apply_ns_) / all;
  shares.queue = std::clamp(queue, 0.0, 1.0 - shares.apply);
  shares.idle = 1.0 - shares.apply - shares.queue;
  return shares;
}

CoordinatorConnection::CoordinatorConnection(PsDriver& driver)
    : driver_(driver), stream_(*this), inlet_(stream_) {}

void CoordinatorConnection::connect(Link& link, const std::string& address, Deadline deadline) {
  stream_.open(link.connect(address, inlet_, deadline));
}

void CoordinatorConnection::send(const ControlMessage& message) {
  auto payload = std::make_unique<const std::vector<std::byte>>(encode(message));
  const std::span<const std::byte> bytes = *payload;
  const FrameHeader header{.type = std::uint16_t(message.type), .step = message.step};
  stream_.send(
      header, bytes, [](void* sent) { delete static_cast<const std::vector<std::byte>*>(sent); },
      const_cast<std::vector<std::byte>*>(payload.release()));
}

std::span<std::byte> CoordinatorConnection::place_payload(const FrameHeader& header) {
  if (header.payload_bytes > kMaxControlBytes) {
    throw Error(ErrorCode::kDataLoss,
                fmt::format("[ps] {} of {} bytes from ps:0 is too long",
                            name_of(MessageType{header.type}), header.payload_bytes));
  }
  if (received_.size() < header.payload_bytes) received_.resize(header.payload_bytes);
  return std::span(received_).first(header.payload_bytes);
}

void CoordinatorConnection::on_frame(const FrameHeader& header,
                                     std::span<const std::byte> payload) {
  check_flags(header);
  const MessageType type{header.type};
  if (!is_control_from_coordinator(type)) {
    throw Error(ErrorCode::kDataLoss, "[ps] unexpected message " + name_of(type) + " from ps:0");
  }
  driver_.from_coordinator(decode_control(type, payload, header.step));
}

void CoordinatorConnection::on_closed(const Error&) {
  driver_.coordinator_closed(stream_.handled());
}

namespace {

int link_threads(const PsOptions& options) {
  const int cores = usable_cores();
  const int most = options.any_job ? cores : std::max(1, int(options.spec.workers.size()));
  return std::clamp(options.threads > 0 ? options.threads : cores, 1, most);
}

int apply_threads(const PsOptions& options) {
  return options.threads > 0 ? options.threads : usable_cores();
}

}  // namespace

PsDriver::PsDriver(const PsOptions& options, std::function<void()> wake)
    : options_(options),
      threads_(link_threads(options)),
      wake_(std::move(wake)),
      apply_pool_(apply_threads(options)),
      machine_(
          machine_options(), [this](const Declare& declare) { return take_variables(declare); },
          now()),
      saving_(options.sees_files) {}

PsDriver::~PsDriver() = default;

PsSummary PsDriver::summary() const {
  const PsAccount::Shares shares = account_.shares(threads_);
  const Bytes sent = bytes();
  return {.job = id(),
          .applied = applied(),
          .late = late(),
          .global_step = global_step(),
          .seconds = shares.seconds,
          .apply_share = shares.apply,
          .queue_share = shares.queue,
          .idle_share = shares.idle,
          .error = {},
          .use = use(),
          .bytes_sent = sent.sent,
          .bytes_received = sent.received,
          .kept = kept()};
}

KeptOnPs PsDriver::kept() const {
  const std::lock_guard lock(mutex_);
  if (!shard_) return {};
  return kept_on_ps(shard_->variables(), shard_->all_pieces(), shard_->ps());
}

void PsDriver::tell_progress(PsPeer& peer) {
  const std::string text = options_.progress_text ? options_.progress_text(summary()) : "";
  answer(peer.id(), MessageType::kProgress, text);
}

PsTaskOptions PsDriver::machine_options() const {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return {.ps = options_.task.index,
          .workers = int(options_.spec.workers.size()),
          .cluster_id = options_.cluster_id,
          .any_job = options_.any_job,
          .incarnation = std::uint64_t(since_epoch.count()),
          .first_epoch = options_.first_epoch,
          .join_timeout = options_.join_timeout,
          .reconnect_timeout = options_.reconnect_timeout,
          .last_step = options_.last_step,
          .warm_steps = kUntimedSteps};
}

void PsDriver::say(const std::string& line) const {
  if (options_.say) options_.say(line);
}

void PsDriver::warn(const std::string& line) const {
  if (options_.warn) options_.warn(line);
}

// The state machine calls this function during drive(), so the lock is held.
std::vector<std::int32_t> PsDriver::take_variables(const Declare& declare) {
  const bool in_rounds = declare.aggregation.kind == AggregationKind::kRounds;
  shard_ = std::make_unique<Shard>(declare.variables, declare.pieces, machine_.ps(), apply_pool_,
                                   options_.after_reads, in_rounds ? machine_.workers() + 1 : 0);
  for (std::size_t i = 0; options_.timeline != nullptr && i < shard_->size(); ++i) {
    labels_.push_back(
        options_.timeline->label(rule_label(shard_->at(i).variable(), shard_->at(i).where().id)));
  }
  if (options_.placed) options_.placed(placement_text(declare.variables, declare.pieces));
  return shard_->changed_after_reads();
}

void PsDriver::carry_out(std::vector<HostAction>& later) {
  for (std::size_t i = 0; i < out_.actions().size(); ++i) {
    Outbox::Action action = std::move(out_.actions()[i]);
    if (const auto* send = std::get_if<Outbox::Send>(&action)) {
      carry_out(*send);
    } else if (const auto* line = std::get_if<Outbox::Line>(&action)) {
      carry_out(*line);
    } else if (const auto* close = std::get_if<Outbox::Close>(&action)) {
      closing_.emplace_back(close->peer, close->patience);
      wake_();
    } else if (const auto* share = std::get_if<Outbox::ShareValues>(&action)) {
      if (PsPeer* peer = find(share->to)) {
        peer->replies().share(kMemoryOfValues, shard_->values());
      }
    } else if (const auto* attach = std::get_if<Outbox::Attach>(&action)) {
      find(attach->to)->take_connection_of(*find(attach->from));
    } else if (const auto* forget = std::get_if<Outbox::Forget>(&action)) {
      forgotten_.push_back(forget->peer);
      wake_();
    } else if (const auto* go_on = std::get_if<Outbox::GoOn>(&action)) {
      later.emplace_back(*go_on);
    } else if (auto* found = std::get_if<Outbox::Find>(&action)) {
      later.emplace_back(std::move(*found));
    } else if (auto* mark = std::get_if<Outbox::Mark>(&action)) {
      carry_out_in_order(std::move(*mark), later);
    } else if (auto* save = std::get_if<Outbox::Save>(&action)) {
      carry_out_in_order(std::move(*save), later);
    } else if (auto* decide = std::get_if<Outbox::Decide>(&action)) {
      carry_out(std::move(*decide));
      later.emplace_back(RunRounds{});
    } else if (const auto* clip = std::get_if<Outbox::Clip>(&action)) {
      rounds_.push(clip->scale);
      later.emplace_back(RunRounds{});
    } else if (std::holds_alternative<Outbox::Connect>(action)) {
      connects_ = true;
      wake_();
    }
  }
  out_.clear();
}

// In rounds, an action waits until all earlier decisions are carried out. So a checkpoint is of the
// moment between two rounds.
template <typename Action>
void PsDriver::carry_out_in_order(Action action, std::vector<HostAction>& later) {
  if (!machine_.in_rounds()) return void(later.emplace_back(std::move(action)));
  rounds_.push([this, action = HostAction(std::move(action))] { carry_out_unlocked(action); });
  later.emplace_back(RunRounds{});
}

// If a message cannot be sent, because too many messages wait for its receiver or memory is out,
// the connection of the receiver ends. The peer that caused the message has made no error.
void PsDriver::carry_out(const Outbox::Send& send) {
  if (send.to == Outbox::kCoordinator) return coordinator().send(send.message);
  PsPeer* const peer = find(send.to);
  if (peer == nullptr) return;
  const ControlMessage& message = send.message;
  try {
    if (const auto* number = std::get_if<std::int64_t>(&message.body)) {
      peer->replies().send(message.type, encode_number(*number), message.step);
    } else if (const auto* done = std::get_if<StepDone>(&message.body)) {
      peer->replies().send(message.type, encode(*done), message.step);
    } else if (const auto* state = std::get_if<StateBytes>(&message.body)) {
      peer->replies().send_task_state(*state, message.step);
    } else {
      peer->replies().send(message.type, encode(message), message.step);
    }
  } catch (const std::exception& error) {
    machine_.give_up(send.to, error.what(), out_);
  }
}

void PsDriver::carry_out(const Outbox::Line& line) const {
  const PsPeer* const about = find(line.about);
  const std::string text = line.before + (about == nullptr ? "" : about->text()) + line.after;
  line.warning ? warn(text) : say(text);
}

void PsDriver::carry_out_unlocked(const HostAction& action) {
  if (const auto* find = std::get_if<Outbox::Find>(&action)) {
    answer(find->asker, MessageType::kFoundFile, saving_.find(find->file, *shard_));
  } else if (const auto* mark = std::get_if<Outbox::Mark>(&action)) {
    saving_.mark(*shard_, mark->what);
  } else if (const auto* save = std::get_if<Outbox::Save>(&action)) {
    saving_.write(*shard_, save->path,
                  [this, asker = save->asker, number = save->save](const SavedShard& saved) {
                    answer(asker, MessageType::kSaved, saved, number);
                  });
  } else if (const auto* on = std::get_if<Outbox::GoOn>(&action)) {
    go_on(*on);
  } else {
    rounds_.run();
  }
}

// A peer that is a member stays in peers_, so the pointer remains valid without the lock.
void PsDriver::go_on(const Outbox::GoOn& action) {
  if (action.peer == Outbox::kCoordinator) return coordinator_->go_on(action.handled);
  std::unique_lock lock(mutex_);
  PsPeer* const peer = find(action.peer);
  lock.unlock();
  try {
    if (peer != nullptr) peer->stream().go_on(action.handled);
  } catch (const Error& error) {
    drive([&](Outbox& out) { machine_.refuse(action.peer, error.what(), out); });
  }
}

void PsDriver::answer(PeerId to, MessageType type, ControlMessage::Body body, std::uint64_t step) {
  drive([&](Outbox& out) { out.send(to, type, std::move(body), step); });
}

PsPeer* PsDriver::find(PeerId id) const {
  const auto found = peers_.find(id);
  return found == peers_.end() ? nullptr : found->second.get();
}

Receiver* PsDriver::accept(std::shared_ptr<Connection> connection) {
  return drive([&](Outbox& out) -> Receiver* {
    const PeerId id = next_peer_++;
    machine_.accepted(id, now(), out);
    wake_();
    auto peer = std::make_unique<PsPeer>(*this, id, std::move(connection));
    return &peers_.emplace(id, std::move(peer)).first->second->inlet();
  });
}

void PsDriver::control(PsPeer& peer, const ControlMessage& message) {
  drive([&](Outbox& out) {
    machine_.received(peer.id(), message, now(), out);
    const int worker = machine_.worker(peer.id());
    if (message.type == MessageType::kHello && worker >= 0) peer.identify(worker);
    const int shard = machine_.shard(peer.id());
    if (message.type == MessageType::kHello && shard >= 0) peer.identify_ps(shard);
  });
  wake_();
}

Shard& PsDriver::shard_for(PsPeer& peer, bool initialised) {
  const std::lock_guard lock(mutex_);
  machine_.check_agreed(peer.id(), initialised);
  return *shard_;
}

void PsDriver::refuse(PsPeer& peer, const std::string& why) {
  drive([&](Outbox& out) { machine_.refuse(peer.id(), why, out); });
}

void PsDriver::refuse_all(const std::string& why) {
  drive([&](Outbox& out) { machine_.refuse_workers(why, out); });
}

Fate PsDriver::begin_step(PsPeer& peer, std::int64_t step, bool reads_now, const StepBegin& begin) {
  return drive([&](Outbox&) {
    if (!bytes_before_) {
      bytes_before_ = bytes_locked();
      use_.start();
    }
    return machine_.begin_step(peer.id(), step, reads_now, begin);
  });
}

void PsDriver::end_step(PsPeer& peer, std::int64_t step, Fate fate, bool skipped) {
  const bool counts = fate == Fate::kApply;
  if (counts) ++applied_;
  const std::int64_t global_step = drive(
      [&](Outbox& out) { return machine_.end_step(peer.id(), step, fate, now(), out, skipped); });
  const std::int64_t every = options_.progress_every.steps;
  if (counts && every > 0 && global_step % every == 0) wake_();
}

std::int64_t PsDriver::global_step() const {
  const std::lock_guard lock(mutex_);
  return machine_.global_step();
}

bool PsDriver::closed(PsPeer& peer, const Error& error) {
  const PsTask::Ended ended = {
      .why = error.what(), .handled = peer.stream().handled(), .broken = peer.stream().broken()};
  const bool may_come_back =
      drive([&](Outbox& out) { return machine_.closed(peer.id(), ended, now(), out); });
  wake_();
  return may_come_back;
}

void PsDriver::let_go(PsPeer& peer) {
  const std::lock_guard lock(mutex_);
  peer.gone = true;
  if (!peer.is_member()) wake_();
}

PsDriver::Bytes PsDriver::bytes_locked() const {
  Bytes bytes = bytes_gone_;
  for (const auto& [id, peer] : peers_) {
    const Traffic& traffic = peer->stream().traffic();
    bytes.sent += traffic.bytes_sent;
    bytes.received += traffic.bytes_received;
  }
  return bytes;
}

PsDriver::Bytes PsDriver::bytes() const {
  const std::lock_guard lock(mutex_);
  const Bytes now = bytes_locked(), before = bytes_before_.value_or(now);
  return {now.sent - before.sent, now.received - before.received};
}

TimePoint PsDriver::turn(TimePoint time) {
  std::vector<std::pair<PsPeer*, Duration>> closing;
  std::vector<PsPeer*> forgotten;
  const TimePoint next = drive([&](Outbox& out) { return machine_.tick(time, out); });
  {
    const std::lock_guard lock(mutex_);
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    for (const auto& [id, patience] : std::exchange(closing_, {})) {
      if (PsPeer* peer = find(id)) closing.emplace_back(peer, patience);
    }
    for (const PeerId id : std::exchange(forgotten_, {})) forgotten.push_back(find(id));
    forget_unidentified(closing);
  }
  for (PsPeer* const peer : forgotten) peer->finish();
  // Runs without the lock, since closing ends in on_closed, which takes the lock. The pointers stay
  // valid, since only this thread forgets peers.
  for (const auto& [peer, patience] : closing) peer->replies().close(Deadline::after(patience));
  return next;
}

// A peer that is a member stays in peers_, since a subscription to changes, or a save, may still
// name it.
void PsDriver::forget_unidentified(std::span<const std::pair<PsPeer*, Duration>> closing) {
  std::erase_if(peers_, [&](const auto& entry) {
    const PsPeer& peer = *entry.second;
    const auto named = std::ranges::find(closing, &peer, &std::pair<PsPeer*, Duration>::first);
    if (!peer.gone || peer.is_member() || named != closing.end()) return false;
    bytes_gone_.sent += peer.stream().traffic().bytes_sent;
    bytes_gone_.received += peer.stream().traffic().bytes_received;
    return true;
  });
}

Membership::End PsDriver::end(TimePoint time) const {
  const std::lock_guard lock(mutex_);
  return machine_.end(time);
}

bool PsDriver::begins_again() const {
  const std::lock_guard lock(mutex_);
  return machine_.begins_again();
}

std::uint64_t PsDriver::epoch() const {
  const std::lock_guard lock(mutex_);
  return machine_.epoch();
}

bool PsDriver::given_up() const {
  const std::lock_guard lock(mutex_);
  return machine_.given_up();
}

std::string PsDriver::members() const {
  const std::lock_guard lock(mutex_);
  return machine_.members();
}

std::string PsDriver::id() const {
  const std::lock_guard lock(mutex_);
  return machine_.id();
}

bool PsDriver::ask_to_leave() {
  return drive([&](Outbox& out) { return machine_.ask_to_leave(out); });
}

bool PsDriver::all_gone() const {
  const std::lock_guard lock(mutex_);
  return machine_.all_gone();
}

// PsDriver: synchronous rounds, and the connection to ps 0.

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
