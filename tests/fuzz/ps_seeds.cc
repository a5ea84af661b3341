#include "tests/fuzz/ps_seeds.h"

#include "params/protocol/placement.h"
#include "params/wire/save_messages.h"
#include "params/wire/task_state.h"

namespace paceline::testing {
namespace {

using Type = MessageType;
using Payload = std::vector<std::byte>;

constexpr std::uint32_t kW = 0, kTable = 1, kFetched = 3;  // pieces
constexpr std::size_t kWBytes = 48, kRowBytes = 8;

std::vector<VariableSpec> variables() {
  return {{.name = "w", .shape = {4, 3}, .rule = Adam{}},
          {.name = "table", .shape = {10, 2}, .rule = Sgd{}, .sparse = true},
          {.name = "frozen", .shape = {5}, .trained = false},
          {.name = "fetched", .shape = {3}, .trained = false}};
}

Payload hello(int worker, std::uint64_t incarnation = 1, DType wire = DType::kFloat32) {
  Hello hello;
  hello.role = "worker";
  hello.index = worker;
  hello.cluster_id = "fuzz";
  hello.incarnation = incarnation;
  hello.workers = 3;
  hello.wire = wire;
  return encode(hello);
}

Payload declare(std::vector<VariableSpec> specs = variables(), std::int64_t last_step = 0) {
  Declare declare{.last_step = last_step, .variables = std::move(specs), .pieces = {}};
  declare.pieces = place_variables(declare.variables, 1);
  return encode(declare);
}

Payload numbers(std::initializer_list<std::uint32_t> values) {
  const auto bytes = std::as_bytes(std::span(values.begin(), values.size()));
  return {bytes.begin(), bytes.end()};
}

Payload number(std::int64_t value) {
  const auto bytes = encode_number(value);
  return {bytes.begin(), bytes.end()};
}

Payload step_begin(bool clipped) {
  Payload bytes;
  encode(StepBegin{.clipped = clipped, .examples = 8, .learning_rates = {.5f, .5f, .5f, .5f}},
         bytes);
  return bytes;
}

Payload step_end(bool with_table, std::vector<std::int32_t> next_rows = {}) {
  StepEnd end{.clip_scale = 0.5f, .entries = {}};
  end.entries.push_back({.piece = kW, .contributed = true, .next_rows = {}});
  end.entries.push_back(
      {.piece = kTable, .contributed = with_table, .next_rows = std::move(next_rows)});
  Payload bytes;
  encode(end, bytes);
  return bytes;
}

Payload state_of(int worker, std::int64_t step) {
  TaskState state{
      .worker = worker, .step = step, .position = {{{"batch", 3}}, {{"cost", 0.5}}}, .local = {}};
  state.local.push_back({"train/h", Tensor(DType::kFloat32, {2, 2})});
  return encode(state);
}

/// Sends a hello and a declaration. The peer has the same number as the worker.
void join(PsScript& script, int worker, DType wire = DType::kFloat32) {
  script.frame(worker, Type::kHello, hello(worker, 1, wire));
  script.frame(worker, Type::kDeclare, declare());
}

void initialise(PsScript& script) {
  script.frame(0, Type::kWrite, Payload(kWBytes, std::byte{1}), {.id = kW});
  script.frame(0, Type::kWrite, Payload(kWBytes), {.flags = 1, .id = kW});
  script.frame(0, Type::kWriteEnd, number(5));
}

PsScript two_workers() {
  PsScript script;
  join(script, 1);
  join(script, 0);
  initialise(script);
  return script;
}

Payload clip(float scale) {
  Payload bytes;
  encode(StepClip{scale}, bytes);
  return bytes;
}

/// Adds a step whose contributions are sent in frames.
void step(PsScript& script, int worker, std::uint64_t step, bool clipped,
          std::size_t w_bytes = kWBytes, std::size_t row_bytes = kRowBytes) {
  script.frame(worker, Type::kStepBegin, step_begin(clipped), {.step = step});
  if (clipped && step % 2 == 1) script.frame(worker, Type::kClip, clip(0.5f), {.step = step});
  const Payload half(w_bytes / 2, std::byte{0x3d});
  script.frame(worker, Type::kChunk, half, {.id = kW, .step = step});
  script.frame(worker, Type::kRowIds, numbers({3, 7}), {.id = kTable, .step = step});
  script.frame(worker, Type::kChunk, half, {.id = kW, .offset = kWBytes / 2, .step = step});
  script.frame(worker, Type::kChunk, Payload(2 * row_bytes), {.id = kTable, .step = step});
  script.frame(worker, Type::kStepEnd, step_end(true, {1, 2}), {.step = step});
}

/// Adds a step whose contributions lie in memory 0 of the worker.
void step_in_memory(PsScript& script, int worker, std::uint64_t step, bool clipped,
                    std::uint16_t wanted = kSendValues) {
  script.frame(worker, Type::kStepBegin, step_begin(clipped), {.step = step});
  script.frame(worker, Type::kContribution, {}, {.flags = wanted, .id = kW, .step = step});
  script.frame(worker, Type::kContribution, numbers({0, 9}),
               {.id = kTable, .offset = kWBytes, .step = step});
  script.frame(worker, Type::kStepEnd, step_end(true), {.step = step});
}

void leave(PsScript& script, int worker) {
  script.frame(worker, Type::kDone, {});
  script.frame(worker, Type::kGoodbye, {});
  script.vanish(worker);
}

PsSeed training() {
  PsScript script = two_workers();
  script.frame(0, Type::kOrder, numbers({kTable, kW}));
  script.frame(0, Type::kPull, numbers({kW, kTable, kFetched}), {.flags = kTellChanges});
  for (std::uint64_t version = 0; version < 3; ++version) {
    script.frame(0, Type::kPullNext, {}, {.id = kFetched, .step = version});
  }
  script.frame(0, Type::kPullNext, {}, {.id = kW, .step = ~std::uint64_t{0}});
  script.frame(0, Type::kPullRows, numbers({0, 9}), {.id = kTable});
  step(script, 0, 0, false);
  script.share(1, 256);
  step_in_memory(script, 1, 0, false);
  step(script, 0, 1, true);
  step_in_memory(script, 1, 1, true);
  script.frame(1, Type::kPull, numbers({kW, kTable}), {.flags = kIntoCopy});
  step_in_memory(script, 1, 2, false, kRenewCopy);
  leave(script, 0);
  leave(script, 1);
  return {"training",
          script,
          5,
          {Type::kValues, Type::kRowValues, Type::kTaken, Type::kChanged, Type::kCopied,
           Type::kStepDone, Type::kJobState}};
}

PsSeed bfloat16() {
  PsScript script;
  join(script, 0, DType::kBFloat16);
  initialise(script);
  step(script, 0, 0, false, kWBytes / 2, kRowBytes / 2);
  step(script, 0, 1, true, kWBytes / 2, kRowBytes / 2);
  return {"bfloat16", script, 2, {Type::kValues, Type::kRowValues}};
}

PsSeed reading() {
  PsScript script = two_workers();
  script.frame(1, Type::kRead, numbers({0, 1, 2, 3}));
  script.frame(1, Type::kPull, numbers({3}));
  script.frame(1, Type::kReadDone, {}, {.id = kFetched});
  script.stop_reading(1);
  script.frame(1, Type::kPull, numbers({0, 1, 2, 3}));
  script.read_on(1);
  return {"reading", script, 0, {Type::kState, Type::kValues}};
}

PsSeed saving() {
  PsScript script = two_workers();
  script.find_file(0);
  script.frame(1, Type::kStepBegin, step_begin(false), {.step = 0});
  script.frame(1, Type::kChunk, Payload(kWBytes / 2), {.id = kW});
  script.frame(0, Type::kMark, {}, {.step = 1});
  const Payload state = state_of(1, 0);
  const auto middle = state.begin() + 20;
  script.frame(1, Type::kTaskState, {state.begin(), middle}, {.flags = 1, .step = 1});
  script.frame(1, Type::kTaskState, {middle, state.end()}, {.step = 1});
  script.frame(1, Type::kChunk, Payload(kWBytes / 2), {.id = kW, .offset = kWBytes / 2});
  script.frame(1, Type::kStepEnd, step_end(false), {.step = 0});
  script.save_shard(0, "shard-0-of-1.safetensors", 1);
  step(script, 0, 0, false);
  return {"saving", script, 2, {Type::kFoundFile, Type::kAskState, Type::kTaskState, Type::kSaved}};
}

PsSeed saved_by_the_chief() {
  PsScript script = two_workers();
  script.frame(0, Type::kFindFile, encode(FindFile{"/nobody/sees/this", "content"}));
  script.frame(0, Type::kMark, {}, {.step = 1});
  step(script, 1, 0, false);
  script.frame(0, Type::kSaveShard, encode_text(""), {.step = 1});
  script.frame(0, Type::kReadMarked, number(kWBytes), {.id = kW});
  script.frame(0, Type::kReadMarked, number(8), {.flags = 3, .id = kW});
  return {"saved_by_the_chief", script, 1, {Type::kFoundFile, Type::kSaved, Type::kMarked}};
}

PsSeed read_before_the_mark() {
  PsScript script = two_workers();
  script.frame(0, Type::kReadMarked, number(kWBytes), {.id = kW});
  return {"read_before_the_mark", script, 0, {Type::kRefuse}, "was not marked"};
}

PsSeed resuming() {
  PsScript script;
  join(script, 0);
  join(script, 1);
  script.frame(0, Type::kTaskState, state_of(0, 6));
  script.frame(0, Type::kTaskState, state_of(1, 4));
  initialise(script);
  step(script, 1, 4, false);
  script.frame(1, Type::kTaskState, state_of(1, 5));
  leave(script, 1);
  script.frame(0, Type::kMark, {}, {.step = 1});
  return {"resuming", script, 1, {Type::kTaskState, Type::kInitialised}};
}

// A newer process of a task replaces one that is in the middle of a step, and makes the step once
// more. Then the older process returns before its connection has ended.
PsSeed replaced() {
  PsScript script = two_workers();
  step(script, 1, 0, false);
  script.frame(1, Type::kStepBegin, step_begin(true), {.step = 1});
  script.frame(1, Type::kChunk, Payload(kWBytes / 2), {.id = kW, .step = 1});
  script.frame(2, Type::kHello, hello(1, 2));
  script.frame(2, Type::kDeclare, declare());
  step(script, 2, 0, false);
  step(script, 2, 1, false);
  script.frame(3, Type::kHello, hello(1, 2));
  return {"replaced",
          script,
          2,
          {Type::kWelcome, Type::kRefuse, Type::kStepDone, Type::kBusy},
          "took its place"};
}

PsSeed refused() {
  PsScript script;
  join(script, 0);
  script.frame(1, Type::kHello, hello(1));
  script.frame(1, Type::kDeclare, declare({{.name = "w", .shape = {4, 4}}}));
  script.frame(2, Type::kHello, hello(2));
  script.frame(2, Type::kStepBegin, step_begin(false));
  script.share(3, 16);
  return {"refused", script, 0, {Type::kDeclared, Type::kRefuse}, "other variables"};
}

PsSeed vanishing() {
  PsScript script = two_workers();
  script.frame(1, Type::kStepBegin, step_begin(true), {.step = 0});
  script.frame(1, Type::kChunk, Payload(kWBytes / 2), {.id = kW});
  script.frame(0, Type::kMark, {}, {.step = 1});
  script.vanish(1);
  script.stop_reading(0);
  script.frame(0, Type::kPull, numbers({kW, kTable}), {.flags = kTellChanges});
  script.stop_ps();
  script.vanish(0);
  script.share(3, 1);
  script.wait_seconds(20);
  return {"vanishing", script, 0, {Type::kStop, Type::kValues}, "lost worker:1"};
}

}  // namespace

std::vector<PsSeed> ps_seeds() {
  return {
      training(), bfloat16(), reading(), saving(),   saved_by_the_chief(), read_before_the_mark(),
      resuming(), replaced(), refused(), vanishing()};
}

}  // namespace paceline::testing
