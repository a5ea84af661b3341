// JSON that is not trusted.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "paceline/tensor.h"

namespace paceline {

/// Parses an object. Throws kDataLoss that begins with `what` for any other text: one that is no
/// JSON (with line and column), one that has a name twice in an object, and one that is nested
/// deeper than `depth`.
nlohmann::json parse_strict(std::string_view text, const std::string& what, int depth);

/// These functions return a member or a value. They throw kDataLoss that begins with `what` if it
/// does not exist, or is not of the asked kind.
const nlohmann::json& member(const nlohmann::json& object, const char* name,
                             const std::string& what);
/// Returns an integer of at least 0.
std::int64_t whole_number(const nlohmann::json& value, const std::string& what);
std::string text_of(const nlohmann::json& value, const std::string& what);
Shape shape_of(const nlohmann::json& value, const std::string& what);

}  // namespace paceline
