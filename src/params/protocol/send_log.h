// SendLog keeps the messages that one side has sent and the other may not have handled yet, so that
// a connection that was cut can continue. It is a plain state machine: it has no thread, socket or
// clock.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/ring.h"
#include "paceline/error.h"

namespace paceline {

/// Items that travel in one direction, in order. The first item is number 0 on both sides, so no
/// item carries its number. Several connections, one after the other, carry the items.
template <typename Item>
class SendLog {
 public:
  void push(Item item) { items_.push(std::move(item)); }
  /// True while the present connection has not been given all items.
  bool has_next() const { return next_ < end(); }
  /// The next item for the present connection; from then on it counts as given to this connection.
  /// The reference holds until the next call.
  Item& next() { return items_[std::size_t(next_++ - first_)]; }

  /// The other side has handled this many items in all. Throws kDataLoss when that is impossible.
  void confirm(std::uint64_t handled) {
    if (handled < confirmed_ || handled > next_) {
      throw Error(ErrorCode::kDataLoss,
                  fmt::format("the peer says that it has handled {} messages; it has confirmed {} "
                              "before, and {} were sent",
                              handled, confirmed_, next_));
    }
    confirmed_ = handled;
  }
  /// A new connection continues: items that the other side has not handled are sent again. Throws
  /// as confirm() does.
  void go_on(std::uint64_t handled) {
    confirm(handled);
    next_ = handled;
  }

  /// True while pop() would return an item that is confirmed, and so may be given back.
  bool has_confirmed() const { return first_ < confirmed_; }
  const Item& front() const { return items_.front(); }
  Item pop() {
    ++first_;
    return items_.pop();
  }
  /// The number of items that are not confirmed.
  std::uint64_t unconfirmed() const { return end() - confirmed_; }
  bool empty() const { return items_.empty(); }
  /// Call it when nothing will be sent any more: takes out the first item, whether it is confirmed
  /// or not.
  Item abandon() {
    Item item = pop();
    next_ = std::max(next_, first_);
    confirmed_ = std::max(confirmed_, first_);
    return item;
  }

 private:
  std::uint64_t end() const { return first_ + items_.size(); }

  Ring<Item> items_;             // from number first_ on
  std::uint64_t first_ = 0;      // all items before this number were given back
  std::uint64_t confirmed_ = 0;  // the number of items that the other side has handled
  std::uint64_t next_ = 0;       // the number of items that were given to the present connection
};

/// Counts the items that this side has handled, and says when to confirm them to the other side.
class HandledCount {
 public:
  /// The most items that the other side must keep because this side has not confirmed them.
  static constexpr std::uint64_t kMostUnconfirmed = 64;

  /// One more item was handled. Returns true when the other side must be told the count now.
  bool handled(bool confirm_at_once) {
    ++count_;
    if (!confirm_at_once && count_ - told_ < kMostUnconfirmed) return false;
    told_ = count_;
    return true;
  }
  std::uint64_t count() const { return count_; }

 private:
  std::uint64_t count_ = 0, told_ = 0;
};

}  // namespace paceline
