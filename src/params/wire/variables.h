// Variables on the wire, and the comparison of two tasks' lists of variables.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "exec/parameter_store.h"
#include "params/protocol/placement.h"
#include "params/wire/fields.h"

namespace paceline {

void write_variables(WireWriter& writer, std::span<const VariableSpec> variables);
/// Throws kDataLoss for an unknown dtype, rule or trait, and for a shape with too many dimensions
/// or elements.
std::vector<VariableSpec> read_variables(WireReader& reader);

void write_pieces(WireWriter& writer, std::span<const Piece> pieces);
/// Throws kDataLoss unless the pieces are rows of the variables, in order, each row once.
std::vector<Piece> read_pieces(WireReader& reader, std::span<const VariableSpec> variables);

/// Returns the 64-bit FNV-1a of the bytes of write_variables, and so of all properties.
std::uint64_t fingerprint_of(std::span<const VariableSpec> variables);

/// Returns the properties that must agree, in words: "w float32 (3,4) sgd learning rate 0.1 (…)
/// weight decay 0".
std::string describe(const VariableSpec& variable);
/// Returns, in words, the first variable in which the lists differ, as it stands in each list;
/// empty when the lists are equal.
std::string first_difference(std::span<const VariableSpec> ours, const std::string& our_name,
                             std::span<const VariableSpec> theirs, const std::string& their_name);

}  // namespace paceline
