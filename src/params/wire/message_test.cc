#include "params/wire/message.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>

#include "base/philox.h"
#include "base/testing/error_of.h"
#include "kernels/testing/custom_rules.h"
#include "paceline/error.h"
#include "params/wire/task_state.h"
#include "params/wire/travelling_type.h"
#include "params/wire/variables.h"

namespace paceline {
namespace {

std::vector<VariableSpec> some_variables() {
  return {{.name = "w", .shape = {6, 3}, .rule = Adam{.learning_rate = 0.5f}, .weight_decay = 0.1f},
          {.name = "embedding", .shape = {100, 8}, .sparse = true},
          {.name = "steps", .dtype = DType::kInt64, .shape = {}, .trained = false}};
}

TEST(Message, HelloComesBack) {
  const Hello hello{.role = "worker",
                    .index = 3,
                    .cluster_id = "run-7",
                    .incarnation = 12345678901234,
                    .epoch = 2,
                    .handled = 77,
                    .fingerprint = 0xdeadbeef,
                    .wire = DType::kBFloat16,
                    .flags = {"--accumulate\t2", "--late\tfold"},
                    .process = "pid 4711 on host b",
                    .credentials = "none yet"};
  EXPECT_EQ(decode_hello(encode(hello)), hello);
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", std::uint8_t(byte));
  return text;
}

TEST(Message, DeclaredComesBack) {
  const Declared declared{.initialised = true, .changed_after_reads = {0, 2}};
  EXPECT_EQ(decode_declared(encode(declared)), declared);
  EXPECT_EQ(decode_declared(encode(Declared{})), Declared{});
  const std::array<std::byte, 1> of_version_7 = {};
  EXPECT_THROW(decode_declared(of_version_7), Error);
}

// The example of docs/wire.md.
TEST(Message, HelloHasTheBytesOfItsFormat) {
  const Hello hello{.role = "worker",
                    .index = 1,
                    .cluster_id = "run-7",
                    .incarnation = 0x1122334455667788,
                    .fingerprint = 0xa1b2c3d4e5f60718,
                    .workers = 2,
                    .flags = {"--seed\t1"},
                    .process = "pid 7 on b",
                    .credentials = {}};
  EXPECT_EQ(hex(encode(hello)),
            "15000000"
            "0600776f726b6572"
            "01000000"
            "050072756e2d37"
            "8877665544332211"
            "0000000000000000"
            "0000000000000000"
            "1807f6e5d4c3b2a1"
            "00000000"
            "0000000000000000"
            "02000000"
            "00"
            "00"
            "01000000"
            "08002d2d736565640931"
            "0a007069642037206f6e2062"
            "0000");
}

TEST(Message, MessagesOfAStepHaveTheBytesOfTheirFormat) {
  std::vector<std::byte> bytes;
  encode(
      StepBegin{
          .clipped = true, .examples = 20, .round = 7, .clip_norm = 5, .learning_rates = {1, 2}},
      bytes);
  EXPECT_EQ(hex(bytes),
            "01"
            "1400000000000000"
            "0700000000000000"
            "0000a040"
            "02000000"
            "0000803f"
            "00000040");
  encode(StepEnd{.clip_scale = 2, .entries = {{7, true, {5, 6}}, {8, false, {}}}}, bytes);
  EXPECT_EQ(hex(bytes),
            "00000040"
            "02000000"
            "07000000"
            "01"
            "02000000"
            "05000000"
            "06000000"
            "08000000"
            "00"
            "00000000");
  const StepDone done{.global_step = 1000, .staleness = 3, .contributors = 0x1122334455667788};
  EXPECT_EQ(hex(encode(done)),
            "e803000000000000"
            "0300000000000000"
            "8877665544332211");
  EXPECT_EQ(decode_step_done(encode(done)), done);
  EXPECT_EQ(
      hex(encode(JobState{.all_warm = true, .any_done = true, .all_done = false, .ended = true})),
      "01"
      "01"
      "00"
      "01");
  EXPECT_EQ(hex(encode(Welcome{.incarnation = 3, .epoch = 4, .handled = 5})),
            "0300000000000000"
            "0400000000000000"
            "0500000000000000");
}

TEST(Message, MessagesOfAStepComeBackIntoUsedMemory) {
  const StepBegin begin{.clipped = true, .examples = 20, .learning_rates = {1, 2}};
  const StepEnd end{.clip_scale = 2, .entries = {{7, true, {5, 6}}, {8, false, {}}}};
  std::vector<std::byte> bytes;
  StepBegin begin_back{.learning_rates = {9, 9, 9, 9}};
  encode(begin, bytes);
  decode_step_begin(bytes, begin_back);
  EXPECT_EQ(begin_back, begin);
  StepEnd end_back{.entries = {{1, true, {3, 3, 3}}, {1, true, {2}}, {2, false, {}}}};
  encode(end, bytes);
  decode_step_end(bytes, end_back);
  EXPECT_EQ(end_back, end);
}

TEST(Message, AClipScaleIsAFactorFrom0To1) {
  std::vector<std::byte> bytes;
  for (const float scale : {0.0f, 0.25f, 1.0f}) {
    encode(StepClip{scale}, bytes);
    EXPECT_EQ(decode_clip(bytes), StepClip{scale});
  }
  for (const float scale : {-0.5f, 1.5f, NAN, INFINITY}) {
    encode(StepClip{scale}, bytes);
    EXPECT_THROW(decode_clip(bytes), Error);
  }
}

// A decoder must compare a count of entries with the bytes that are left, and refuse it, before it
// makes memory for the entries.
TEST(Message, ACountThatLiesIsRefused) {
  std::vector<std::byte> bytes;
  encode(StepEnd{.entries = {{7, true, {}}}}, bytes);
  bytes[4] = std::byte{2};
  StepEnd end;
  EXPECT_THROW(decode_step_end(bytes, end), Error);
  EXPECT_TRUE(end.entries.empty());
}

TEST(Message, AnotherVersionIsReadAsFarAsItsNumber) {
  std::vector<std::byte> bytes = encode(Hello{});
  bytes[0] = std::byte{kProtocolVersion + 1};
  bytes.resize(6);
  EXPECT_EQ(decode_hello(bytes).version, kProtocolVersion + 1);
}

TEST(Message, AnUnknownWireIsRefused) {
  std::vector<std::byte> bytes = encode(Hello{});
  bytes[bytes.size() - 3] =
      std::byte{kTravellingTypes.size()};  // before the credentials, which are empty
  EXPECT_THROW(decode_hello(bytes), Error);
}

TEST(Message, DeclareComesBack) {
  Declare declare{.last_step = 300,
                  .aggregation = {AggregationKind::kBounded, 3},
                  .variables = some_variables(),
                  .pieces = {}};
  declare.pieces = place_variables(declare.variables, 2);
  EXPECT_EQ(decode_declare(encode(declare)), declare);
}

TEST(Message, PiecesThatDoNotCoverTheVariablesAreRefused) {
  Declare declare{.variables = some_variables(), .pieces = {}};
  declare.pieces = place_variables(declare.variables, 1);
  declare.pieces[0].rows = 1000;
  EXPECT_THROW(decode_declare(encode(declare)), Error);
  declare.pieces[0].rows = 5;
  EXPECT_THROW(decode_declare(encode(declare)), Error);
}

// 64 bits could not count the bytes of this variable.
TEST(Message, AVariableThatNoMemoryHoldsIsRefused) {
  Declare declare{.variables = {{.name = "w", .shape = {std::int64_t{1} << 62}}}, .pieces = {}};
  declare.pieces = {{.rows = std::int64_t{1} << 62}};
  EXPECT_THROW(decode_declare(encode(declare)), Error);
}

// Unknown bits are refused, since a later version may give them a meaning.
TEST(Message, AVariableWithUnknownTraitsIsRefused) {
  const Declare declare{.variables = {{.name = "w", .shape = {4}}}, .pieces = {{.rows = 4}}};
  std::vector<std::byte> bytes = encode(declare);
  // The traits are last in the variable, before the count of pieces and the piece.
  std::byte& traits = bytes[bytes.size() - sizeof(std::uint32_t) - 24 - 1];
  ASSERT_EQ(traits, std::byte{1});
  EXPECT_EQ(decode_declare(bytes), declare);
  traits = std::byte{1 | 4};
  EXPECT_TRUE(decode_declare(bytes).variables.front().average_ramp);
  for (const int bit : {8, 128}) {
    traits = std::byte(1 | bit);
    EXPECT_THROW(decode_declare(bytes), Error) << bit;
  }
}

TEST(Message, TruncatedOrFollowedByMoreIsRefused) {
  Declare declare{.variables = some_variables(), .pieces = {}};
  declare.pieces = place_variables(declare.variables, 1);
  std::vector<std::byte> bytes = encode(declare);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_THROW(decode_declare(std::span(bytes).first(length)), Error) << length;
  }
  bytes.push_back(std::byte{0});
  EXPECT_THROW(decode_declare(bytes), Error);
}

// Whatever bytes arrive, a decoder gives a message or throws Error.
TEST(Message, RandomBytesNeverDoMoreThanThrow) {
  StepBegin step_begin;
  StepEnd step_end;
  std::vector<std::uint32_t> pieces;
  std::vector<std::int32_t> rows;
  const std::vector<std::function<void(std::span<const std::byte>)>> decoders = {
      [](auto bytes) { decode_hello(bytes); },
      [](auto bytes) { decode_welcome(bytes); },
      [](auto bytes) { decode_declare(bytes); },
      [](auto bytes) { decode_step_done(bytes); },
      [](auto bytes) { decode_job_state(bytes); },
      [&](auto bytes) { decode_step_begin(bytes, step_begin); },
      [&](auto bytes) { decode_step_end(bytes, step_end); },
      [](auto bytes) { decode_number(bytes, MessageType::kStepLimit); },
      [](auto bytes) { decode_text(bytes, MessageType::kRefuse); },
      [&](auto bytes) { decode_pieces(bytes, MessageType::kPull, pieces); },
      [&](auto bytes) { decode_rows(bytes, MessageType::kRowIds, rows); }};
  Declare declare{.variables = some_variables(), .pieces = {}};
  declare.pieces = place_variables(declare.variables, 2);
  const std::vector<std::byte> good = encode(declare);
  for (std::uint64_t i = 0; i < 3000; ++i) {
    const PhiloxBlock random = philox(7, i, 0);
    std::vector<std::byte> bytes = good;
    bytes.resize(random[0] % (good.size() + 20));
    const std::size_t changes = i % 2 == 0 ? bytes.size() : 3;
    for (std::size_t j = 0; j < changes && !bytes.empty(); ++j) {
      const PhiloxBlock word = philox(8, i, j);
      bytes[i % 2 == 0 ? j : word[0] % bytes.size()] = std::byte(word[1]);
    }
    for (const auto& decode : decoders) {
      try {
        decode(bytes);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
      }
    }
  }
}

TEST(Message, TypesHaveNames) {
  EXPECT_EQ(name_of(MessageType::kStepBegin), "step_begin");
  EXPECT_EQ(name_of(MessageType{99}), "unknown (99)");
}

TEST(Message, UnknownFlagsAreRefused) {
  const auto refuses = [](MessageType type, int flags) {
    const FrameHeader header{.type = std::uint16_t(type), .flags = std::uint16_t(flags)};
    return error_of(ErrorCode::kDataLoss, [&] { check_flags(header); });
  };
  EXPECT_EQ(refuses(MessageType::kPull, kTellChanges | kIntoCopy | 4),
            "[wire] message pull has unknown flags: 0x4");
  EXPECT_EQ(refuses(MessageType::kStepEnd, 0x8001),
            "[wire] message step_end has unknown flags: 0x8001");
  EXPECT_EQ(refuses(MessageType::kContribution, 0x100),
            "[wire] message contribution has unknown flags: 0x100");
  EXPECT_EQ(refuses(MessageType::kPull, kTellChanges | kIntoCopy), "");
  EXPECT_EQ(refuses(MessageType::kValues, kOfVersion | kAskedAhead), "");
  EXPECT_EQ(refuses(MessageType::kContribution, 63 * kMemoryNumber + kSendValues), "");
  EXPECT_EQ(refuses(MessageType::kTaskState, kStateGoesOn), "");
  EXPECT_EQ(refuses(MessageType::kMarked, 0xffff), "");
  for (std::uint16_t type = 0; type < 50; ++type) EXPECT_EQ(refuses(MessageType{type}, 0), "");
}

TEST(VariableWire, TheFingerprintSeesEveryPartOfAVariable) {
  const auto variables = some_variables();
  const std::uint64_t fingerprint = fingerprint_of(variables);
  const auto changed = [&](auto change) {
    auto other = variables;
    change(other[0]);
    return fingerprint_of(other) != fingerprint;
  };
  EXPECT_TRUE(changed([](VariableSpec& v) { v.name = "x"; }));
  EXPECT_TRUE(changed([](VariableSpec& v) { v.shape = {3, 6}; }));
  EXPECT_TRUE(changed([](VariableSpec& v) { v.dtype = DType::kInt32; }));
  EXPECT_TRUE(changed([](VariableSpec& v) { v.rule = Adam{.learning_rate = 0.4f}; }));
  EXPECT_TRUE(changed([](VariableSpec& v) { v.weight_decay = 0; }));
  EXPECT_TRUE(changed([](VariableSpec& v) { v.average_decay = 0.5f; }));
  EXPECT_TRUE(changed([](VariableSpec& v) { v.trained = false; }));
  EXPECT_FALSE(changed([](VariableSpec&) {}));
}

TEST(VariableWire, ARuleOfOnesOwnTravelsAsItsProgram) {
  std::vector<VariableSpec> variables = some_variables();
  variables[0].rule = lion(0.25f);
  const Declare declare{.last_step = 0,
                        .aggregation = {},
                        .variables = variables,
                        .pieces = place_variables(variables, 1)};
  const std::vector<VariableSpec> arrived = decode_declare(encode(declare)).variables;
  EXPECT_EQ(arrived[0].rule, variables[0].rule);
  EXPECT_EQ(arrived[0].rule.learning_rate(), 0.25f);
  std::vector<VariableSpec> other = variables;
  other[0].rule = CustomRule{
      .name = "lion", .learning_rate = 0.25f, .slots = {{"m"}}, .update = [](const RuleTerms& r) {
        return RuleUpdate{r.value, r.slots};
      }};
  EXPECT_NE(fingerprint_of(other), fingerprint_of(variables));
  EXPECT_NE(first_difference(variables, "the chief", other, "worker:1"), "");
}

TEST(VariableWire, TheFirstDifferenceNamesBothSides) {
  auto ours = some_variables(), theirs = some_variables();
  EXPECT_EQ(first_difference(ours, "the chief", theirs, "worker:1"), "");
  theirs[1].shape = {100, 9};
  const std::string text = first_difference(ours, "the chief", theirs, "worker:1");
  EXPECT_NE(text.find("variable 1: the chief has 'embedding float32 (100,8)"), std::string::npos);
  EXPECT_NE(text.find("worker:1 has 'embedding float32 (100,9)"), std::string::npos);
  theirs = {ours[0]};
  EXPECT_NE(first_difference(ours, "a", theirs, "b").find("b has 'only 1 variables'"),
            std::string::npos);
}

}  // namespace
}  // namespace paceline
