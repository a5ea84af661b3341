// Dimensions whose sizes are known when a graph is computed only. In shapes a prime number stands
// for each, so that functions which infer shapes multiply and add them as they do sizes: the
// prime 94,331 for "batch" makes (batch·8) of (batch,8), and shapes of 16 axes of it still fit.
// Sizes that are a multiple of one of these primes by chance are taken for open ones; there are 16,
// none of them near a round number.
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
/// Returns the name of an open dimension that stands alone; empty of all else.
std::string open_name(std::int64_t dimension);
/// True of an open dimension, of products with it, and of one that a little was added to.
bool is_open(std::int64_t dimension);
/// Returns the names that it depends on.
std::vector<std::string> open_names(std::int64_t dimension);
/// Returns it as text: "64", "batch", "batch·time", "8·batch", "time+1".
std::string dimension_text(std::int64_t dimension);
/// Returns the size of such a dimension where open ones have these sizes; those of other names stay
/// open.
std::int64_t sized(std::int64_t dimension, const OpenSizes& sizes);

}  // namespace paceline
