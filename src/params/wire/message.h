// The messages of tasks, and their layout in a frame's payload. The format is in docs/wire.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exec/parameter_store.h"
#include "net/frame.h"
#include "params/protocol/aggregation.h"
#include "params/protocol/placement.h"

namespace paceline {

constexpr std::uint32_t kProtocolVersion = 21;
/// The most bytes of a payload with values or contributions, unless one row is longer.
constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
/// The most bytes of any other payload.
constexpr std::size_t kMaxControlBytes = std::size_t{1} << 24;
/// Flag of kPull: the worker wants one kChanged when one of the pieces changes.
constexpr std::uint16_t kTellChanges = 1;
/// Flag of kPull: the ps writes the pieces into the worker's copy (kCopied) instead of sending
/// them.
constexpr std::uint16_t kIntoCopy = 2;
/// Flag of kStepBegin: the step reads, from now on, all its values that others can change. The
/// answers to this worker's previous step have brought none of these values.
constexpr std::uint16_t kReadsNow = 1;
/// Flag of kStepBegin: the job ends if the contribution has NaN or infinity.
constexpr std::uint16_t kMustBeFinite = 2;
/// Flags of kValues. kOfVersion: the header's step is the version of the piece, which counts its
/// changes. kAskedAhead: kPullNext asked for these values.
constexpr std::uint16_t kOfVersion = 1, kAskedAhead = 2;
/// Flag of kChunk: the ps does not answer with the new values. The worker pulls them once it may
/// begin its next step.
constexpr std::uint16_t kPullsLater = 1;
/// Flags of kContribution. kSendValues: the ps sends the new values. kRenewCopy: the ps writes the
/// new values into the worker's copy. The number of the worker's memory is in the flags, too, as a
/// multiple of kMemoryNumber.
constexpr std::uint16_t kSendValues = 1, kRenewCopy = 2, kMemoryNumber = 4;
/// The numbers of the memories that a ps shares.
constexpr std::uint32_t kMemoryOfValues = 0, kMemoryOfCopy = 1;
/// The number of memories that a worker may share.
constexpr std::uint32_t kMostSharedMemories = 64;
/// The most bytes that a worker may share in all. There is a limit because shared memory takes up
/// physical memory once the ps reads it, even if the worker has never written to it.
std::size_t most_shared_bytes(std::span<const VariableSpec> variables);

enum class MessageType : std::uint16_t {
  kHello = 1,         // worker → ps, ps → ps 0: who I am
  kWelcome = 2,       // ps → worker
  kRefuse = 3,        // ps → worker, worker → worker: why not; the ps then closes
  kDeclare = 4,       // worker → ps: the variables; the ps compares each list with the chief's
  kDeclared = 5,      // ps → worker: the lists agree; these variables I change after each read
  kWrite = 6,         // chief → ps: bytes of a value (flags 0) or slot (flags 1 + slot)
  kWriteEnd = 7,      // chief → ps: all values are written; the variables are initialised
  kWritten = 8,       // ps → chief
  kInitialised = 9,   // ps → all workers
  kPull = 10,         // worker → ps: send these pieces
  kPullRows = 11,     // worker → ps: send these rows of a piece
  kValues = 12,       // ps → worker: bytes of a piece
  kRowValues = 13,    // ps → worker: rows of a piece
  kStepBegin = 14,    // worker → ps: what holds for all contributions of the step
  kChunk = 15,        // worker → ps: bytes of a contribution to a piece
  kRowIds = 16,       // worker → ps: the rows of the chunks that follow
  kClip = 90,         // worker → ps: the clip scale, before the contributions of the step
  kStepEnd = 17,      // worker → ps: the contributions end here; send these rows
  kStepDone = 18,     // ps 0, in rounds every ps → worker: the step's global step and staleness
  kStepLimit = 42,    // ps 0 → worker: the last own step that it may begin (bounded staleness)
  kJobState = 19,     // ps 0 → all workers, when it changes
  kRead = 20,         // worker → ps: send pieces with their slots
  kState = 21,        // ps → worker: bytes of a value (flags 0) or slot (flags 1 + slot)
  kDone = 22,         // worker → ps: my training is over
  kGoodbye = 23,      // worker → ps: I leave in good order
  kEndTraining = 44,  // worker → ps: no worker may begin another step
  // Between tasks that share memory.
  /// Worker → ps: my contribution lies in shared memory; for a sparse piece: its rows.
  kContribution = 24,
  kTaken = 25,     // ps → worker: the contribution was applied
  kReadDone = 26,  // worker → ps: a fetch step has read a piece that you change after reads
  kCopied = 40,    // ps → worker: your copy has the piece as it is now
  // For fetch steps, which keep values for several steps.
  kChanged = 27,   // ps → worker: a piece has changed since it was sent
  kOrder = 28,     // worker → ps: the order in which I need pieces from now on
  kPullNext = 41,  // worker → ps: send the piece once it is newer than mine
  // While a checkpoint is written (save_messages.h).
  kFindFile = 29,    // chief → ps: do you see this file of mine?
  kFoundFile = 30,   // ps → chief
  kMark = 31,        // chief → ps: keep the present values, which will be saved
  kSaveShard = 32,   // chief → ps: write the shard to this path; with no path: I will read it
  kSaved = 33,       // ps → chief: done, or why not
  kReadMarked = 34,  // chief → ps: send these bytes of the kept values
  kMarked = 35,      // ps → chief: bytes of a value (flags 0) or slot (flags 1 + slot)
  kAskState = 36,    // ps 0 → worker: tell your own state
  kTaskState = 37,   // worker → ps 0 → chief; when training resumes: chief → ps 0 → worker
  kStop = 38,        // ps → workers: I was told to stop; leave (the chief: after saving)
  kBusy = 39,        // ps → worker: I serve another job, call again later; the ps then closes
  /// Both ways: I have handled so many numbered messages of yours (the header's step).
  kHandled = 43,
  // When a ps has lost its values.
  kRestarted = 45,   // ps → worker: I am not the process that you know; the ps then closes
  kBeginAgain = 46,  // chief → ps: forget everything; all values come from a checkpoint
  // Among ps tasks in synchronous rounds (round_messages.h).
  kWhole = 47,    // ps → ps 0: I have all of a worker's contribution
  kDecided = 48,  // ps 0 → ps: apply the mean of these contributions; drop those
  kSquares = 49,  // ps → ps 0: the sum of the squares of my part of the mean
  kScale = 50,    // ps 0 → ps or committing worker: the factor by which the mean is clipped
  // In rounds that the workers commit themselves (round_messages.h).
  kGiven = 73,      // ps 0 → worker: all of your contribution is on every ps
  kCommitted = 74,  // worker → ps 0: these workers have committed the round: close it
  kWithdraw = 75,   // worker → ps 0: my contribution counts nowhere
  kRoundOpen = 76,  // worker → ps: tell me once this round is open; ps → worker: it is open
  // Between the workers of an all-reduce (collective_messages.h).
  kGroupStatus = 53,      // worker → worker: my standing, whenever it changes
  kPropose = 54,          // coordinator → members to be: the members of the next epoch
  kAgree = 55,            // member → coordinator: I agree, and reduce no more in the old epoch
  kForm = 56,             // coordinator → members: the next epoch begins
  kCollectiveBegin = 57,  // member → all: my step begins
  kSumsWhole = 58,        // member → coordinator: I have all sums of the step
  kCommit = 59,           // coordinator → members: all of us have all sums, so the step counts
  kPartialSum = 60,       // member → next in the ring: bytes of a sum
  kContributedRows = 61,  // member → all: rows of a contribution
  kInPlace = 62,  // member → all: my contribution, or my part of a sum, can be read where it lies
  kValuesSent = 63,  // member → joiner: the values that I wrote to you are whole
  // Before a job, when its processes learn the addresses of all (meeting_messages.h). The answer
  // may also be kRefuse.
  kAttend = 66,  // process → meeting point: who I am, and where I will listen
  kRoster = 67,  // meeting point → process: the addresses of all
  // While records are shared out (record_messages.h).
  kAskRecords = 70,    // worker → ps 0: give me the next records
  kRecords = 71,       // ps 0 → worker: these are yours
  kReadsRecords = 72,  // worker → ps 0: my step reads the first N of all records that you gave me
  kExchangedSums = 64,  // member → all: my part of sums in the middle of a step
  // While somebody watches the job (progress_board.h).
  kAskProgress = 86,  // chief → ps, worker → worker; ps 0 → worker: say how far you are
  kProgress = 87,     // ps → chief, worker → worker; worker → ps 0 → chief: the answer
  // While a timeline is recorded (clock_questions.h).
  kAskClock = 88,  // worker → ps; member → member: what does your clock show? (step: mine)
  kClock = 89,     // the answer: my clock (offset), when you asked (step)
};

/// True for messages that are numbered: most of the messages between a worker and a ps. Each
/// direction has its own numbers, and each message is handled once, over any number of connections.
/// Messages that make a connection, or are about a connection, have no number.
bool is_numbered(MessageType type);

/// Returns "step_begin", or "unknown (77)".
std::string name_of(MessageType type);
/// Throws kDataLoss naming the message when the header has a flag that its type does not have.
/// Where the flags are the number of an array, the reader of the message checks them.
void check_flags(const FrameHeader& header);

/// Identity of a worker, or of a ps that calls ps 0.
struct Hello {
  std::uint32_t version = kProtocolVersion;
  std::string role;  // "worker", or "ps" for a ps
  std::int32_t index = 0;
  std::string cluster_id;
  std::uint64_t incarnation = 0;  // a newer process of the same task has a larger number
  std::uint64_t epoch = 0;        // the last membership epoch that the sender knows; 0: none
  /// How many numbered messages of the receiver the sender has handled, on all connections.
  std::uint64_t handled = 0;
  std::uint64_t fingerprint = 0;  // of the variables
  std::int32_t ps = 0;            // the ps that the sender takes the receiver for
  /// The incarnation of the ps that has welcomed the sender; 0: none has.
  std::uint64_t ps_incarnation = 0;
  std::int32_t workers = 0;      // the number of workers in the sender's cluster spec; 0: unknown
  DType wire = DType::kFloat32;  // the type in which contributions travel, one of kTravellingTypes
  /// How many of each block's numbers travel, the largest ones; 0: all of them.
  std::uint8_t kept = 0;
  /// The flags on which workers must agree (params/joined_strategy.h).
  std::vector<std::string> flags = {};
  std::string process;      // for messages: "pid 4711 on host b"
  std::string credentials;  // room for authentication; empty in this version
  bool operator==(const Hello&) const = default;
};

struct Welcome {
  std::uint64_t incarnation = 0;  // of the ps
  std::uint64_t epoch = 0;
  /// How many numbered messages of the worker the ps has handled, on all connections.
  std::uint64_t handled = 0;
  bool operator==(const Welcome&) const = default;
};

struct Declare {
  std::int64_t last_step = 0;
  AggregationSpec aggregation = {};
  bool shares_records = false;  // ps 0 shares out records while training goes on
  std::vector<VariableSpec> variables;
  std::vector<Piece> pieces;
  bool operator==(const Declare&) const = default;
};

struct Declared {
  bool initialised = false;                       // the variables are initialised already
  std::vector<std::int32_t> changed_after_reads;  // variables that the ps changes after each read
  bool operator==(const Declared&) const = default;
};

struct StepBegin {
  bool clipped = false;
  std::int64_t examples = 0;
  /// Only in rounds: the step reads the values as they are after this many rounds.
  std::int64_t round = 0;
  float clip_norm = 0;                // only in rounds: clips the mean to this norm; 0: no clipping
  std::vector<float> learning_rates;  // by variable
  bool operator==(const StepBegin&) const = default;
};

/// The factor by which the contributions of a step are clipped.
struct StepClip {
  float scale = 1;
  bool operator==(const StepClip&) const = default;
};

/// The message that ends a step. It has an entry for each piece of the ps that the plan uses, in
/// the order in which the next step first needs the pieces.
struct StepEnd {
  struct Entry {
    std::uint32_t piece = 0;
    bool contributed = false;
    /// Rows of the variable. The ps sends their values once it has applied the contribution.
    std::vector<std::int32_t> next_rows;
    bool operator==(const Entry&) const = default;
  };
  float clip_scale = 1;
  std::vector<Entry> entries;
  bool operator==(const StepEnd&) const = default;
};

struct StepDone {
  std::int64_t global_step = 0;
  /// How many updates of other workers were made between the time when the step read its values and
  /// its own update. kAppliedBefore or kTooLate: the step made no update.
  std::int64_t staleness = kAppliedBefore;
  static constexpr std::int64_t kAppliedBefore = -1;
  /// The step's round was closed before its contribution was whole.
  static constexpr std::int64_t kTooLate = -2;
  /// The fingerprint of the workers whose contributions counted in this step; 0: the contribution
  /// of this worker did not count. Only ps 0 tells it, in rounds that the workers commit.
  std::uint64_t contributors = 0;
  bool operator==(const StepDone&) const = default;
};

struct JobState {
  bool all_warm = false, any_done = false, all_done = false;
  bool ended = false;  // a worker has ended the training of all
  bool operator==(const JobState&) const = default;
};

std::vector<std::byte> encode(const Hello& hello);
std::vector<std::byte> encode(const Welcome& welcome);
std::vector<std::byte> encode(const Declare& declare);
std::vector<std::byte> encode(const Declared& declared);
std::vector<std::byte> encode(const JobState& state);
/// Encodes into an array of the message's exact size, without allocating, since every step sends
/// it.
std::array<std::byte, sizeof(StepDone)> encode(const StepDone& done);
std::array<std::byte, sizeof(std::int64_t)> encode_number(std::int64_t number);
std::vector<std::byte> encode_text(std::string_view text);

/// All decoders throw kDataLoss naming the message.
Hello decode_hello(std::span<const std::byte> payload);
Welcome decode_welcome(std::span<const std::byte> payload);
Declare decode_declare(std::span<const std::byte> payload);
/// Does not check the variables.
Declared decode_declared(std::span<const std::byte> payload);
StepDone decode_step_done(std::span<const std::byte> payload);
JobState decode_job_state(std::span<const std::byte> payload);
std::int64_t decode_number(std::span<const std::byte> payload, MessageType type);
std::string decode_text(std::span<const std::byte> payload, MessageType type);

/// Messages of every step. They are written to and read into memory that is used again, so they
/// allocate nothing once that memory is large enough.
void encode(const StepBegin& begin, std::vector<std::byte>& bytes);
void encode(const StepClip& clip, std::vector<std::byte>& bytes);
void encode(const StepEnd& end, std::vector<std::byte>& bytes);
void decode_step_begin(std::span<const std::byte> payload, StepBegin& begin);
/// Also throws kDataLoss for a scale outside [0, 1].
StepClip decode_clip(std::span<const std::byte> payload);
void decode_step_end(std::span<const std::byte> payload, StepEnd& end);
/// Piece ids (kPull, kRead, kOrder).
void decode_pieces(std::span<const std::byte> payload, MessageType type,
                   std::vector<std::uint32_t>& pieces);
/// Row ids (kPullRows, kRowIds).
void decode_rows(std::span<const std::byte> payload, MessageType type,
                 std::vector<std::int32_t>& rows);

}  // namespace paceline
