// What fetching a value that a ps rewrites is held against: the same products and bytes, and
// nothing else.
#pragma once

#include "bench/channel.h"
#include "models/fetch.h"

namespace paceline::bench {

using models::FetchShape;

/// µs that a product takes longer when W, in memory that a process shares, is written anew by that
/// process before it and, asked for with it, again meanwhile.
double added_by_rewriting(const FetchShape& shape, Waiting waiting);
/// µs for the bytes of W over a bare socket, asked for as a worker does.
double socket_exchange_us(const FetchShape& shape, Waiting waiting);
/// µs that a product takes longer when W came so right before it, with the waiting for it: what the
/// product loses to operands that are not where it left them is in it.
double added_by_socket(const FetchShape& shape, Waiting waiting);

}  // namespace paceline::bench
