// What fetching a value that a ps rewrites is held against: the same products and bytes, and
// nothing else.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bench/channel.h"

namespace paceline::bench {

/// Of the workload: X [batch, features] · W [features, hidden], where W is fetched.
struct FetchedShape {
  const char* name;
  std::int64_t features, batch, hidden;
  std::size_t floats() const { return std::size_t(features * hidden); }
};

/// µs that a product takes longer when W, in memory that a process shares, is written anew by that
/// process before it and, asked for with it, again meanwhile.
double added_by_rewriting(const FetchedShape& shape, Waiting waiting);
/// µs for the bytes of W over a bare socket, asked for as a worker does.
double socket_exchange_us(const FetchedShape& shape, Waiting waiting);
/// µs that a product takes longer when W came so right before it, with the waiting for it: what the
/// product loses to operands that are not where it left them is in it.
double added_by_socket(const FetchedShape& shape, Waiting waiting);

}  // namespace paceline::bench
