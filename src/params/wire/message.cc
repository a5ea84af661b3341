#include "params/wire/message.h"

#include <fmt/format.h>

#include <array>
#include <bit>

#include "base/buffer.h"
#include "paceline/error.h"
#include "params/wire/message_fields.h"
#include "params/wire/task_state.h"
#include "params/wire/variables.h"

namespace paceline {
namespace {

template <typename T>
void decode_ids(std::span<const std::byte> payload, MessageType type, std::vector<T>& ids) {
  const std::string name = name_of(type);
  WireReader reader(payload, name);
  reader.get_all(payload.size() / sizeof(T), ids);
  reader.end();
}

std::uint16_t known_flags(MessageType type) {
  switch (type) {
    case MessageType::kWrite:
    case MessageType::kState:
    case MessageType::kReadMarked:
    case MessageType::kMarked:
      return 0xffff;
    case MessageType::kPull:
      return kTellChanges | kIntoCopy;
    case MessageType::kStepBegin:
      return kReadsNow | kMustBeFinite;
    case MessageType::kValues:
      return kOfVersion | kAskedAhead;
    case MessageType::kContribution:
      return kSendValues | kRenewCopy | kMemoryNumber * (kMostSharedMemories - 1);
    case MessageType::kTaskState:
      return kStateGoesOn;
    case MessageType::kChunk:
      return kPullsLater;
    case MessageType::kPartialSum:
    case MessageType::kContributedRows:
    case MessageType::kInPlace:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

std::string name_of(MessageType type) {
  constexpr std::array<std::string_view, 51> names = {
      "none",         "hello",      "welcome",      "refuse",      "declare",     "declared",
      "write",        "write_end",  "written",      "initialised", "pull",        "pull_rows",
      "values",       "row_values", "step_begin",   "chunk",       "row_ids",     "step_end",
      "step_done",    "job_state",  "read",         "state",       "done",        "goodbye",
      "contribution", "taken",      "read_done",    "changed",     "order",       "find_file",
      "found_file",   "mark",       "save_shard",   "saved",       "read_marked", "marked",
      "ask_state",    "task_state", "stop",         "busy",        "copied",      "pull_next",
      "step_limit",   "handled",    "end_training", "restarted",   "begin_again", "whole",
      "decided",      "squares",    "scale"};
  constexpr std::array<std::string_view, 12> collective_names = {
      "group_status",     "propose",    "agree",       "form",
      "collective_begin", "sums_whole", "commit",      "partial_sum",
      "contributed_rows", "in_place",   "values_sent", "exchanged_sums"};
  const std::size_t i = std::size_t(type);
  if (type == MessageType::kClip) return "clip";
  if (type == MessageType::kAskProgress) return "ask_progress";
  if (type == MessageType::kProgress) return "progress";
  if (type == MessageType::kAskClock) return "ask_clock";
  if (type == MessageType::kClock) return "clock";
  if (type == MessageType::kAttend) return "attend";
  if (type == MessageType::kRoster) return "roster";
  const std::size_t c = i - std::size_t(MessageType::kGroupStatus);
  constexpr std::array<std::string_view, 3> record_names = {"ask_records", "records",
                                                            "reads_records"};
  const std::size_t r = i - std::size_t(MessageType::kAskRecords);
  constexpr std::array<std::string_view, 4> committing_names = {"given", "committed", "withdraw",
                                                                "round_open"};
  const std::size_t g = i - std::size_t(MessageType::kGiven);
  if (g < committing_names.size()) return std::string(committing_names[g]);
  if (c < collective_names.size()) return std::string(collective_names[c]);
  if (r < record_names.size()) return std::string(record_names[r]);
  return i < names.size() ? std::string(names[i]) : fmt::format("unknown ({})", i);
}

bool is_numbered(MessageType type) {
  return type != MessageType::kHello && type != MessageType::kWelcome &&
         type != MessageType::kRefuse && type != MessageType::kBusy &&
         type != MessageType::kRestarted && type != MessageType::kHandled &&
         type != MessageType::kAskClock && type != MessageType::kClock;
}

void check_flags(const FrameHeader& header) {
  const MessageType type{header.type};
  const unsigned unknown = header.flags & ~unsigned{known_flags(type)};
  if (unknown == 0) return;
  throw Error(ErrorCode::kDataLoss,
              fmt::format("[wire] message {} has unknown flags: {:#x}", name_of(type), unknown));
}

// The fields of each message, in order.

void fields(auto& wire, Of<Hello> auto& hello) {
  wire(hello.version, hello.role, hello.index, hello.cluster_id, hello.incarnation, hello.epoch,
       hello.handled, hello.fingerprint, hello.ps, hello.ps_incarnation, hello.workers);
  constexpr std::array kTypes{DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kUInt8};
  wire.choice("wire", hello.wire, kTypes);
  wire(hello.kept, hello.flags, hello.process, hello.credentials);
}

void fields(auto& wire, Of<Welcome> auto& welcome) {
  wire(welcome.incarnation, welcome.epoch, welcome.handled);
}

void fields(auto& wire, Of<AggregationSpec> auto& spec) {
  wire.choice("aggregation", spec.kind, kAggregationKinds);
  wire(spec.staleness, spec.replicas);
  wire.choice("late", spec.late, kLateContributions);
  wire(spec.num_ps, spec.coordinator, spec.workers_commit);
}

void fields(auto& wire, Of<Declared> auto& declared) {
  wire(declared.initialised, declared.changed_after_reads);
}

void fields(auto& wire, Of<JobState> auto& state) {
  wire(state.all_warm, state.any_done, state.all_done, state.ended);
}

void fields(auto& wire, Of<StepBegin> auto& begin) {
  wire(begin.clipped, begin.examples, begin.round, begin.clip_norm, begin.learning_rates);
}

void fields(auto& wire, Of<StepEnd::Entry> auto& entry) {
  wire(entry.piece, entry.contributed, entry.next_rows);
}

void fields(auto& wire, Of<StepClip> auto& clip) { wire(clip.scale); }

void fields(auto& wire, Of<StepEnd> auto& end) { wire(end.clip_scale, end.entries); }

void fields(auto& wire, Of<StepDone> auto& done) {
  wire(done.global_step, done.staleness, done.contributors);
}

std::vector<std::byte> encode(const Hello& hello) { return encode_fields(hello); }
std::vector<std::byte> encode(const Welcome& welcome) { return encode_fields(welcome); }
std::vector<std::byte> encode(const Declared& declared) { return encode_fields(declared); }
std::vector<std::byte> encode(const JobState& state) { return encode_fields(state); }
void encode(const StepBegin& begin, std::vector<std::byte>& bytes) { encode_fields(begin, bytes); }
void encode(const StepClip& clip, std::vector<std::byte>& bytes) { encode_fields(clip, bytes); }
void encode(const StepEnd& end, std::vector<std::byte>& bytes) { encode_fields(end, bytes); }

// Of a hello of another protocol version, reads only the version's number, since the rest may have
// another layout.
Hello decode_hello(std::span<const std::byte> payload) {
  Hello hello;
  hello.version = WireReader(payload, "hello").get<std::uint32_t>();
  if (hello.version == kProtocolVersion) decode_fields(payload, "hello", hello);
  return hello;
}

Declared decode_declared(std::span<const std::byte> payload) {
  return decode_fields<Declared>(payload, "declared");
}

Welcome decode_welcome(std::span<const std::byte> payload) {
  return decode_fields<Welcome>(payload, "welcome");
}

StepDone decode_step_done(std::span<const std::byte> payload) {
  return decode_fields<StepDone>(payload, "step_done");
}

JobState decode_job_state(std::span<const std::byte> payload) {
  return decode_fields<JobState>(payload, "job_state");
}

void decode_step_begin(std::span<const std::byte> payload, StepBegin& begin) {
  decode_fields(payload, "step_begin", begin);
}

StepClip decode_clip(std::span<const std::byte> payload) {
  const auto clip = decode_fields<StepClip>(payload, "clip");
  if (clip.scale >= 0 && clip.scale <= 1) return clip;  // false for NaN
  throw Error(ErrorCode::kDataLoss, fmt::format("[wire] a clip scale of {}", clip.scale));
}

void decode_step_end(std::span<const std::byte> payload, StepEnd& end) {
  decode_fields(payload, "step_end", end);
}

// The contributions of a plan lie side by side in one memory, and a larger plan gets a new memory,
// so the limit leaves room for two plans.
std::size_t most_shared_bytes(std::span<const VariableSpec> variables) {
  constexpr std::size_t kPlans = 2, kLeast = std::size_t{1} << 20;
  std::size_t bytes = 0;
  for (const VariableSpec& variable : variables) {
    const std::size_t size = std::size_t(variable.shape.elements()) * size_of(variable.dtype);
    bytes += round_up(size, kBufferAlignment);
  }
  return kPlans * bytes + kLeast;
}

// Written by hand, not as a list of fields: read_pieces checks the pieces against the variables
// that decode_declare has read before.
std::vector<std::byte> encode(const Declare& declare) {
  std::vector<std::byte> bytes;
  WireWriter writer(bytes);
  writer.put(declare.last_step);
  FieldWriter put(writer);
  fields(put, declare.aggregation);
  writer.put(std::uint8_t(declare.shares_records));
  write_variables(writer, declare.variables);
  write_pieces(writer, declare.pieces);
  return bytes;
}

Declare decode_declare(std::span<const std::byte> payload) {
  WireReader reader(payload, "declare");
  Declare declare;
  declare.last_step = reader.get<std::int64_t>();
  FieldReader get(reader);
  fields(get, declare.aggregation);
  declare.shares_records = reader.get<std::uint8_t>() != 0;
  declare.variables = read_variables(reader);
  declare.pieces = read_pieces(reader, declare.variables);
  reader.end();
  return declare;
}

std::array<std::byte, sizeof(std::int64_t)> encode_number(std::int64_t number) {
  return std::bit_cast<std::array<std::byte, sizeof(number)>>(number);
}

std::array<std::byte, sizeof(StepDone)> encode(const StepDone& done) {
  return std::bit_cast<std::array<std::byte, sizeof(done)>>(done);
}

std::int64_t decode_number(std::span<const std::byte> payload, MessageType type) {
  return decode_fields<std::int64_t>(payload, name_of(type));
}

std::vector<std::byte> encode_text(std::string_view text) {
  std::vector<std::byte> bytes;
  WireWriter(bytes).put_text(text.substr(0, kMostTextBytes));
  return bytes;
}

std::string decode_text(std::span<const std::byte> payload, MessageType type) {
  return decode_fields<std::string>(payload, name_of(type));
}

void decode_pieces(std::span<const std::byte> payload, MessageType type,
                   std::vector<std::uint32_t>& pieces) {
  decode_ids(payload, type, pieces);
}

void decode_rows(std::span<const std::byte> payload, MessageType type,
                 std::vector<std::int32_t>& rows) {
  decode_ids(payload, type, rows);
}

}  // namespace paceline
