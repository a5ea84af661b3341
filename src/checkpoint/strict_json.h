// JSON that is not trusted.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "paceline/tensor.h"

namespace paceline {

/// Parses an object. Throws kDataLoss, beginning with `what`, on anything else: text that is no
/// JSON (with line and column), a name given twice in one object, nesting deeper than `depth`.
nlohmann::json parse_strict(std::string_view text, const std::string& what, int depth);

/// Members and values, each refused with kDataLoss, beginning with `what`, when it is not there or
/// not of that kind.
const nlohmann::json& member(const nlohmann::json& object, const char* name,
                             const std::string& what);
/// Returns an integer of at least 0.
std::int64_t whole_number(const nlohmann::json& value, const std::string& what);
std::string text_of(const nlohmann::json& value, const std::string& what);
Shape shape_of(const nlohmann::json& value, const std::string& what);

}  // namespace paceline
