#include "params/message.h"

#include <fmt/format.h>

#include <array>
#include <bit>

#include "params/variable_wire.h"
#include "params/wire.h"

namespace paceline {

std::string name_of(MessageType type) {
  constexpr std::array<std::string_view, 40> names = {
      "none",         "hello",      "welcome",    "refuse",      "declare",     "declared",
      "write",        "write_end",  "written",    "initialised", "pull",        "pull_rows",
      "values",       "row_values", "step_begin", "chunk",       "row_ids",     "step_end",
      "step_done",    "job_state",  "read",       "state",       "done",        "goodbye",
      "contribution", "taken",      "looked",     "changed",     "order",       "find_file",
      "found_file",   "mark",       "save_shard", "saved",       "read_marked", "marked",
      "ask_state",    "task_state", "stop",       "busy"};
  const std::size_t i = std::size_t(type);
  return i < names.size() ? std::string(names[i]) : fmt::format("unknown ({})", i);
}

std::vector<std::byte> encode(const Hello& hello) {
  std::vector<std::byte> bytes;
  WireWriter writer(bytes);
  writer.put(hello.version);
  writer.put_text(hello.job);
  writer.put(hello.index);
  writer.put_text(hello.cluster_id);
  writer.put(hello.incarnation);
  writer.put(hello.epoch);
  writer.put(hello.fingerprint);
  writer.put(std::uint8_t(hello.spin));
  writer.put(hello.ps);
  writer.put(hello.workers);
  writer.put(std::uint8_t(hello.wire == DType::kBFloat16));
  writer.put_text(hello.credentials);
  return bytes;
}

// Another version may have laid out the rest in another way: only its number is read then.
Hello decode_hello(std::span<const std::byte> payload) {
  WireReader reader(payload, "hello");
  Hello hello;
  hello.version = reader.get<std::uint32_t>();
  if (hello.version != kProtocolVersion) return hello;
  hello.job = reader.get_text();
  hello.index = reader.get<std::int32_t>();
  hello.cluster_id = reader.get_text();
  hello.incarnation = reader.get<std::uint64_t>();
  hello.epoch = reader.get<std::uint64_t>();
  hello.fingerprint = reader.get<std::uint64_t>();
  hello.spin = reader.get<std::uint8_t>() != 0;
  hello.ps = reader.get<std::int32_t>();
  hello.workers = reader.get<std::int32_t>();
  const auto wire = reader.get<std::uint8_t>();
  if (wire > 1) reader.fail(fmt::format("wire {} is unknown", wire));
  hello.wire = wire == 1 ? DType::kBFloat16 : DType::kFloat32;
  hello.credentials = reader.get_text();
  reader.end();
  return hello;
}

std::vector<std::byte> encode(const Welcome& welcome) {
  std::vector<std::byte> bytes;
  WireWriter writer(bytes);
  writer.put(welcome.incarnation);
  writer.put(welcome.epoch);
  return bytes;
}

Welcome decode_welcome(std::span<const std::byte> payload) {
  WireReader reader(payload, "welcome");
  Welcome welcome;
  welcome.incarnation = reader.get<std::uint64_t>();
  welcome.epoch = reader.get<std::uint64_t>();
  reader.end();
  return welcome;
}

std::vector<std::byte> encode(const Declare& declare) {
  std::vector<std::byte> bytes;
  WireWriter writer(bytes);
  writer.put(declare.last_step);
  write_variables(writer, declare.variables);
  write_pieces(writer, declare.pieces);
  return bytes;
}

Declare decode_declare(std::span<const std::byte> payload) {
  WireReader reader(payload, "declare");
  Declare declare;
  declare.last_step = reader.get<std::int64_t>();
  declare.variables = read_variables(reader);
  declare.pieces = read_pieces(reader, declare.variables);
  reader.end();
  return declare;
}

std::vector<std::byte> encode(const JobState& state) {
  std::vector<std::byte> bytes;
  WireWriter writer(bytes);
  writer.put(std::uint8_t(state.all_warm));
  writer.put(std::uint8_t(state.all_done));
  return bytes;
}

JobState decode_job_state(std::span<const std::byte> payload) {
  WireReader reader(payload, "job_state");
  JobState state;
  state.all_warm = reader.get<std::uint8_t>() != 0;
  state.all_done = reader.get<std::uint8_t>() != 0;
  reader.end();
  return state;
}

void decode_step_begin(std::span<const std::byte> payload, StepBegin& begin) {
  WireReader reader(payload, "step_begin");
  begin.clipped = reader.get<std::uint8_t>() != 0;
  begin.examples = reader.get<std::int64_t>();
  const std::size_t count = reader.get_count(sizeof(float));
  reader.get_all(count, begin.learning_rates);
  reader.end();
}

void decode_step_end(std::span<const std::byte> payload, StepEnd& end) {
  WireReader reader(payload, "step_end");
  end.clip_scale = reader.get<float>();
  const std::size_t count = reader.get_count(9);
  end.entries.resize(count);
  for (StepEnd::Entry& entry : end.entries) {
    entry.piece = reader.get<std::uint32_t>();
    entry.contributed = reader.get<std::uint8_t>() != 0;
    const std::size_t rows = reader.get_count(sizeof(std::int32_t));
    reader.get_all(rows, entry.next_rows);
  }
  reader.end();
}

std::array<std::byte, sizeof(std::int64_t)> encode_number(std::int64_t number) {
  return std::bit_cast<std::array<std::byte, sizeof(number)>>(number);
}

std::int64_t decode_number(std::span<const std::byte> payload, MessageType type) {
  const std::string name = name_of(type);
  WireReader reader(payload, name);
  const auto number = reader.get<std::int64_t>();
  reader.end();
  return number;
}

std::vector<std::byte> encode_text(std::string_view text) {
  std::vector<std::byte> bytes;
  WireWriter(bytes).put_text(text.substr(0, 0xffff));
  return bytes;
}

std::string decode_text(std::span<const std::byte> payload, MessageType type) {
  const std::string name = name_of(type);
  WireReader reader(payload, name);
  std::string text = reader.get_text();
  reader.end();
  return text;
}

void decode_pieces(std::span<const std::byte> payload, MessageType type,
                   std::vector<std::uint32_t>& pieces) {
  const std::string name = name_of(type);
  WireReader reader(payload, name);
  reader.get_all(payload.size() / sizeof(std::uint32_t), pieces);
  reader.end();
}

void decode_rows(std::span<const std::byte> payload, MessageType type,
                 std::vector<std::int32_t>& rows) {
  const std::string name = name_of(type);
  WireReader reader(payload, name);
  reader.get_all(payload.size() / sizeof(std::int32_t), rows);
  reader.end();
}

}  // namespace paceline
