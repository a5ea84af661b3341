// The records that a pipeline has yet to deliver, and its place among them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>

#include "data/record_order.h"
#include "paceline/task_position.h"

namespace paceline {

/// A record whose turn it is.
struct Ticket {
  std::int64_t ordinal = 0;  // counted over all epochs, from 0
  std::int64_t epoch = 0;
  RecordOrder::Next record;
};

/// Tells which records were used: all before `next`, except the late ones.
struct DataPlace {
  std::int64_t next = 0;             // an ordinal
  std::set<std::int64_t> late = {};  // ordinals below `next`

  void use(std::int64_t ordinal);
  bool operator==(const DataPlace&) const = default;
};

/// Delivers the records that `from` does not count as used: late ones first, then the others in
/// order.
class TicketStream {
 public:
  /// Without `epochs` it never ends.
  TicketStream(RecordOrder order, std::optional<std::int64_t> epochs, DataPlace from);
  /// Delivers the records that `blocks` gives to this worker.
  TicketStream(RecordOrder order, std::shared_ptr<RecordBlocks> blocks);
  /// True if next() can answer; false while it waits for a block.
  bool ready();
  std::optional<Ticket> next();
  /// Returns the fraction of the shuffle pool that holds records; nothing without a pool.
  std::optional<double> pool_fill() const { return order_.pool_fill(); }

 private:
  RecordOrder order_;
  std::optional<std::int64_t> epochs_;
  DataPlace from_;
  std::optional<Ticket> next_in_order();
  std::optional<Ticket> next_of_block();
  std::int64_t epoch_ = 0, taken_ = 0;  // records of the epoch that the order has passed
  std::shared_ptr<RecordBlocks> blocks_;
  RecordRange block_;  // what is left of the present block
};

}  // namespace paceline
