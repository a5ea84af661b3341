#include "probe/probe_messages.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "base/plain_text.h"
#include "paceline/error.h"
#include "params/wire/message_fields.h"

namespace paceline {
namespace {

constexpr std::array kRoles = {ProbeRole::kAsks, ProbeRole::kLeads, ProbeRole::kStream};
constexpr std::pair<ProbeType, const char*> kNames[] = {
    {ProbeType::kHello, "hello"},       {ProbeType::kWelcome, "welcome"},
    {ProbeType::kRefuse, "refuse"},     {ProbeType::kPing, "ping"},
    {ProbeType::kPong, "pong"},         {ProbeType::kAskRoof, "ask_roof"},
    {ProbeType::kRoof, "roof"},         {ProbeType::kMeasure, "measure"},
    {ProbeType::kMeasured, "measured"}, {ProbeType::kFill, "fill"},
    {ProbeType::kBytes, "bytes"},       {ProbeType::kFilled, "filled"},
    {ProbeType::kAllHere, "all_here"},  {ProbeType::kAskCount, "ask_count"},
    {ProbeType::kCount, "count"}};
constexpr double kMostFigure = 1e18;

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw Error(ErrorCode::kDataLoss, fmt::format("[probe] {}: {}", name, why));
}

void check_figure(const std::string& message, double figure, double least = 0) {
  if (!(figure >= least && figure <= kMostFigure)) refuse(message, "a figure that cannot be");
}

}  // namespace

void fields(auto& wire, Of<ProbeHello> auto& hello) {
  wire(hello.version);
  wire.choice("role", hello.role, kRoles);
  wire(hello.session, hello.seconds, hello.process);
}

void fields(auto& wire, Of<ProbeRoof> auto& roof) { wire(roof.numbers); }

void fields(auto& wire, Of<ProbeMeasure> auto& measure) {
  wire(measure.address, measure.milliseconds);
}

void fields(auto& wire, Of<PairFigures> auto& it) {
  wire(it.one_out, it.all_out, it.one_in, it.all_in, it.best_round_trip_s, it.usual_round_trip_s,
       it.clock_ahead_s, it.clock_doubt_s, it.encrypted);
}

void fields(auto& wire, Of<ProbeMeasured> auto& measured) {
  wire(measured.failure, measured.figures);
}

void fields(auto& wire, Of<ProbeCount> auto& count) { wire(count.bytes, count.nanoseconds); }

std::string name_of(ProbeType type) {
  for (const auto& [known, name] : kNames) {
    if (known == type) return name;
  }
  return fmt::format("unknown ({})", std::uint16_t(type));
}

std::vector<std::byte> encode(const ProbeHello& message) { return encode_fields(message); }
std::vector<std::byte> encode(const ProbeRoof& message) { return encode_fields(message); }
std::vector<std::byte> encode(const ProbeMeasure& message) { return encode_fields(message); }
std::vector<std::byte> encode(const ProbeMeasured& message) { return encode_fields(message); }
std::vector<std::byte> encode(const ProbeCount& message) { return encode_fields(message); }

std::vector<std::byte> encode_probe_text(const std::string& text) {
  constexpr std::size_t kMostLetters = 4000;
  std::vector<std::byte> bytes;
  WireWriter(bytes).put_text(text.substr(0, kMostLetters));
  return bytes;
}

std::vector<std::byte> encode_milliseconds(std::uint32_t milliseconds) {
  std::vector<std::byte> bytes;
  WireWriter(bytes).put(milliseconds);
  return bytes;
}

ProbeHello decode_probe_hello(std::span<const std::byte> payload) {
  const auto version = WireReader(payload, "probe hello").get<std::uint32_t>();
  if (version != kProbeVersion) return {.version = version, .process = {}};
  ProbeHello hello = decode_fields<ProbeHello>(payload, "probe hello");
  hello.process = plain_text(hello.process);
  return hello;
}

ProbeRoof decode_probe_roof(std::span<const std::byte> payload) {
  ProbeRoof roof = decode_fields<ProbeRoof>(payload, "roof");
  for (const auto& [name, number] : roof.numbers) check_figure("roof", number);
  return roof;
}

ProbeMeasure decode_probe_measure(std::span<const std::byte> payload) {
  return decode_fields<ProbeMeasure>(payload, "measure");
}

ProbeMeasured decode_probe_measured(std::span<const std::byte> payload) {
  ProbeMeasured measured = decode_fields<ProbeMeasured>(payload, "measured");
  measured.failure = plain_text(measured.failure);
  const PairFigures& it = measured.figures;
  for (const double figure : {it.one_out, it.all_out, it.one_in, it.all_in, it.best_round_trip_s,
                              it.usual_round_trip_s, it.clock_doubt_s}) {
    check_figure("measured", figure);
  }
  check_figure("measured", it.clock_ahead_s, -kMostFigure);
  return measured;
}

ProbeCount decode_probe_count(std::span<const std::byte> payload) {
  return decode_fields<ProbeCount>(payload, "count");
}

std::string decode_probe_text(std::span<const std::byte> payload, ProbeType type) {
  WireReader reader(payload, name_of(type));
  std::string text = plain_text(reader.get_text());
  reader.end();
  return text;
}

std::uint32_t decode_milliseconds(std::span<const std::byte> payload) {
  WireReader reader(payload, name_of(ProbeType::kFill));
  const auto milliseconds = reader.get<std::uint32_t>();
  reader.end();
  if (milliseconds > kMostFillMilliseconds) refuse("fill", "a stream is not filled for so long");
  return milliseconds;
}

void check_probe_length(const FrameHeader& header) {
  const ProbeType type{header.type};
  const std::uint32_t most = type == ProbeType::kBytes ? kProbeFillBytes : kMostProbeBytes;
  if (header.payload_bytes > most) refuse(name_of(type), "it is too long");
}

}  // namespace paceline
