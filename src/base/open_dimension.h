// Dimensions whose sizes are known only when a graph is computed. In a shape, a prime number stands
// for each open dimension, so that functions which infer shapes can multiply and add dimensions as
// usual. With 94,331 for "batch", reshaping (batch,8) gives (batch·8).
//
// A size that is by chance a multiple of one of these primes is taken for an open dimension. There
// are 16 of them, and none is near a round number.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

/// The sizes of open dimensions, by name.
using OpenSizes = std::map<std::string, std::int64_t, std::less<>>;

/// Returns the number that stands for the open dimension of this name, in all graphs of the
/// process. Throws kInvalidArgument when the name is empty, or no number is left for it.
std::int64_t open_dimension(std::string_view name);
/// Returns the name of a dimension that is exactly one open dimension; empty for any other.
std::string open_name(std::int64_t dimension);
/// True for an open dimension, for products with it, and for an open dimension plus or minus at
/// most 64.
bool is_open(std::int64_t dimension);
/// Returns true for products with open dimensions to which nothing was added.
bool is_open_product(std::int64_t dimension);
/// Returns the names of the open dimensions on which `dimension` depends.
std::vector<std::string> open_names(std::int64_t dimension);
/// Returns the dimension as text: "64", "batch", "batch·time", "8·batch", "time+1".
std::string dimension_text(std::int64_t dimension);
/// Returns `dimension` with these sizes in place of its open dimensions. Open dimensions that have
/// no size here stay open.
std::int64_t sized(std::int64_t dimension, const OpenSizes& sizes);

}  // namespace paceline
