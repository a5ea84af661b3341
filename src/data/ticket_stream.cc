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

std::optional<Ticket> TicketStream::next() {
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
