#include "params/wire/variables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/fingerprint.h"
#include "base/row_count.h"
#include "graph/rule_program.h"
#include "paceline/error.h"

namespace paceline {
namespace {

enum Trait : std::uint8_t { kTrained = 1, kSparse = 2, kRamped = 4 };

// The bytes of the fields of the shortest variable: name (2), dtype, rank and rule (1 each),
// learning rate, four numbers of the rule, weight decay, average decay, traits.
constexpr std::size_t kLeastVariableBytes = 2 + 1 + 1 + 1 + 4 + 16 + 4 + 4 + 1;
constexpr std::int64_t kMostElements = std::int64_t{1} << 48;
constexpr std::size_t kPieceBytes = 4 + 8 + 8 + 4;

std::uint8_t traits_of(const VariableSpec& variable) {
  return std::uint8_t((variable.trained ? kTrained : 0) | (variable.sparse ? kSparse : 0) |
                      (variable.average_ramp ? kRamped : 0));
}

void write_variable(WireWriter& writer, const VariableSpec& variable) {
  writer.put_text(variable.name);
  writer.put(std::uint8_t(variable.dtype));
  writer.put(std::uint8_t(variable.shape.rank()));
  writer.put_all(variable.shape.dims());
  writer.put(std::uint8_t(variable.rule.kind()));
  writer.put(variable.rule.learning_rate());
  writer.put_all(std::span<const float>(variable.rule.numbers()));
  const RuleProgram* const program = variable.rule.program();
  if (program != nullptr) writer.put_text(program->text());
  writer.put(variable.weight_decay);
  writer.put(variable.average_decay);
  writer.put(traits_of(variable));
}

Shape read_shape(WireReader& reader) {
  const std::size_t rank = reader.get<std::uint8_t>();
  if (rank > std::size_t(Shape::kMaxRank)) reader.fail(fmt::format("a shape of rank {}", rank));
  const Shape shape(std::span<const std::int64_t>(reader.get_all<std::int64_t>(rank)));
  // No memory holds so many elements. The limit also keeps the number of bytes, slots included,
  // within 64 bits.
  if (shape.elements() > kMostElements) reader.fail("a shape of more than 2^48 elements");
  return shape;
}

Rule read_rule(WireReader& reader) {
  const auto kind = reader.get<std::uint8_t>();
  const auto learning_rate = reader.get<float>();
  std::array<float, Rule::kNumbers> numbers;
  for (float& number : numbers) number = reader.get<float>();
  const bool custom = kind == std::uint8_t(RuleKind::kCustom);
  return Rule(kind, learning_rate, numbers, custom ? reader.get_text() : std::string());
}

VariableSpec read_variable(WireReader& reader) {
  VariableSpec variable;
  variable.name = reader.get_text();
  const auto dtype = reader.get<std::uint8_t>();
  if (dtype >= kDTypeCount) reader.fail(fmt::format("unknown dtype {}", dtype));
  variable.dtype = DType(dtype);
  variable.shape = read_shape(reader);
  variable.rule = read_rule(reader);
  variable.weight_decay = reader.get<float>();
  variable.average_decay = reader.get<float>();
  const auto traits = reader.get<std::uint8_t>();
  if ((traits & ~(kTrained | kSparse | kRamped)) != 0) {
    reader.fail(fmt::format("'{}' has unknown traits {}", variable.name, traits));
  }
  variable.trained = (traits & kTrained) != 0;
  variable.sparse = (traits & kSparse) != 0;
  variable.average_ramp = (traits & kRamped) != 0;
  return variable;
}

// Checks that every row of every variable is in exactly one piece, so that a message about a piece
// names rows that exist.
void check_cover(const WireReader& reader, std::span<const Piece> pieces,
                 std::span<const VariableSpec> variables) {
  std::vector<std::int64_t> covered(variables.size(), 0);
  VariableId last = 0;
  for (const Piece& piece : pieces) {
    const bool known = piece.variable >= last && std::size_t(piece.variable) < variables.size();
    if (!known || piece.rows < 0 || piece.first_row != covered[std::size_t(piece.variable)] ||
        piece.rows > row_count(variables[std::size_t(piece.variable)].shape) - piece.first_row) {
      reader.fail(fmt::format("piece {} does not follow the one before it", piece.id));
    }
    last = piece.variable;
    covered[std::size_t(piece.variable)] += piece.rows;
  }
  for (std::size_t v = 0; v < variables.size(); ++v) {
    if (covered[v] != row_count(variables[v].shape)) reader.fail("rows without a ps");
  }
}

}  // namespace

void write_variables(WireWriter& writer, std::span<const VariableSpec> variables) {
  writer.put(std::uint32_t(variables.size()));
  for (const VariableSpec& variable : variables) write_variable(writer, variable);
}

std::vector<VariableSpec> read_variables(WireReader& reader) {
  std::vector<VariableSpec> variables(reader.get_count(kLeastVariableBytes));
  try {
    for (VariableSpec& variable : variables) variable = read_variable(reader);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kDataLoss) throw;
    reader.fail(error.what());
  }
  return variables;
}

void write_pieces(WireWriter& writer, std::span<const Piece> pieces) {
  writer.put(std::uint32_t(pieces.size()));
  for (const Piece& piece : pieces) {
    writer.put(std::int32_t(piece.variable));
    writer.put(piece.first_row);
    writer.put(piece.rows);
    writer.put(std::int32_t(piece.ps));
  }
}

std::vector<Piece> read_pieces(WireReader& reader, std::span<const VariableSpec> variables) {
  std::vector<Piece> pieces(reader.get_count(kPieceBytes));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    pieces[i].id = std::uint32_t(i);
    pieces[i].variable = reader.get<std::int32_t>();
    pieces[i].first_row = reader.get<std::int64_t>();
    pieces[i].rows = reader.get<std::int64_t>();
    pieces[i].ps = reader.get<std::int32_t>();
  }
  check_cover(reader, pieces, variables);
  return pieces;
}

std::uint64_t fingerprint_of(std::span<const VariableSpec> variables) {
  std::vector<std::byte> bytes;
  WireWriter writer(bytes);
  write_variables(writer, variables);
  return fingerprint_of(std::span<const std::byte>(bytes));
}

// The numbers of a rule, or the lines of its program.
std::string details_of(const Rule& rule) {
  if (rule.program() == nullptr) return fmt::format("{}", fmt::join(rule.numbers(), ", "));
  std::string lines = rule.program()->text();
  std::ranges::replace(lines, '\n', ';');
  return lines;
}

std::string describe(const VariableSpec& variable) {
  return fmt::format(
      "{} {} {} {} learning rate {} ({}) weight decay {}{}{}{}", variable.name,
      name_of(variable.dtype), variable.shape.str(), variable.rule.name(),
      variable.rule.learning_rate(), details_of(variable.rule), variable.weight_decay,
      variable.average_decay > 0 ? fmt::format(" average decay {}{}", variable.average_decay,
                                               variable.average_ramp ? " with a ramp" : "")
                                 : "",
      variable.trained ? "" : " frozen", variable.sparse ? " sparse" : "");
}

std::string first_difference(std::span<const VariableSpec> ours, const std::string& our_name,
                             std::span<const VariableSpec> theirs, const std::string& their_name) {
  const auto side = [](std::span<const VariableSpec> list, std::size_t i) {
    return i < list.size() ? describe(list[i]) : fmt::format("only {} variables", list.size());
  };
  for (std::size_t i = 0; i < std::max(ours.size(), theirs.size()); ++i) {
    if (i < ours.size() && i < theirs.size() && ours[i] == theirs[i]) continue;
    return fmt::format("variable {}: {} has '{}', {} has '{}'", i, our_name, side(ours, i),
                       their_name, side(theirs, i));
  }
  return {};
}

}  // namespace paceline
