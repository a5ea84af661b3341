#include "data/ticket_stream.h"

#include <utility>

namespace paceline {

void DataPlace::use(std::int64_t ordinal) {
  if (ordinal < next) {
    late.erase(ordinal);
    return;
  }
  for (; next < ordinal; ++next) late.insert(late.end(), next);
  ++next;
}

TicketStream::TicketStream(RecordOrder order, std::optional<std::int64_t> epochs, DataPlace from)
    : order_(std::move(order)), epochs_(epochs), from_(std::move(from)) {
  const std::int64_t first = from_.late.empty() ? from_.next : *from_.late.begin();
  epoch_ = first / order_.size();
  order_.begin(epoch_);
  for (; taken_ < first % order_.size(); ++taken_) order_.next();
}

TicketStream::TicketStream(RecordOrder order, std::shared_ptr<RecordBlocks> blocks)
    : order_(std::move(order)), blocks_(std::move(blocks)) {
  order_.begin(0);
}

bool TicketStream::ready() {
  if (!blocks_ || block_.size() > 0) return true;
  block_ = blocks_->take();
  return block_.size() > 0 || blocks_->over();
}

std::optional<Ticket> TicketStream::next() { return blocks_ ? next_of_block() : next_in_order(); }

// Walks through the epoch's order up to the record. If the order has passed the record, begins the
// epoch again.
std::optional<Ticket> TicketStream::next_of_block() {
  if (!ready() || block_.size() == 0) return {};
  const std::int64_t ordinal = block_.first++;
  const std::int64_t epoch = ordinal / order_.size(), place = ordinal % order_.size();
  if (epoch != epoch_ || place < taken_) {
    epoch_ = epoch;
    taken_ = 0;
    order_.begin(epoch_);
  }
  for (; taken_ < place; ++taken_) order_.next();
  ++taken_;
  return Ticket{ordinal, epoch, order_.next()};
}

std::optional<Ticket> TicketStream::next_in_order() {
  while (true) {
    if (taken_ == order_.size()) {
      taken_ = 0;
      order_.begin(++epoch_);
    }
    if (epochs_ && epoch_ >= *epochs_) return {};
    const std::int64_t ordinal = epoch_ * order_.size() + taken_++;
    const RecordOrder::Next record = order_.next();
    if (ordinal >= from_.next || from_.late.contains(ordinal))
      return Ticket{ordinal, epoch_, record};
  }
}

}  // namespace paceline
