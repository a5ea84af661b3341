// The loops that fetching a value which a ps rewrites is compared with: the same products and
// bytes, and nothing else.
#pragma once

#include "models/fetch.h"

namespace paceline::bench {

using models::FetchShape;

/// Returns the µs that a product takes longer when W, in memory that a process shares, is written
/// anew by that process before it and, asked for with it, again meanwhile.
double added_by_rewriting(const FetchShape& shape);
/// Returns the µs for the bytes of W over a bare socket, asked for as a worker does.
double socket_exchange_us(const FetchShape& shape);
/// Returns the µs that a product takes longer when W arrived over a bare socket right before it,
/// with the wait for W and the product's loss to operands that are not where it left them.
double added_by_socket(const FetchShape& shape);

}  // namespace paceline::bench
