// How a command that is predicted, the copies of it that run at once, and the `paceline predict`
// that started all of them talk with each other: over Unix sockets, in messages of one line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/poll/file_descriptor.h"

namespace paceline {

/// The step of one process.
struct StepPace {
  double seconds = 0;     // from the beginning of a step to its end
  double busy_cores = 0;  // cores that the process kept busy meanwhile; 0: not known
  bool operator==(const StepPace&) const = default;
};

/// A message. Its kind decides which of the other fields it has.
struct CopiesMessage {
  enum class Kind {
    kAsk,    // the command asks for `number` copies
    kReady,  // copy `number` is about to make the steps that are timed
    kGo,     // to a copy: all are ready
    kPace,   // the timed steps of the copy that sends it took paces[0]
    kPaces,  // to the command: the paces of all copies
    kWhy,    // to the command: why there are none, in `why`
  };
  Kind kind = Kind::kGo;
  int number = 0;
  std::vector<StepPace> paces = {};
  std::string why = {};
};
std::string text_of(const CopiesMessage& message);
/// Returns nothing for a text that is no message.
std::optional<CopiesMessage> copies_message_of(std::string_view text);

/// Returns the next message from the other end, which must run for this user; waits for the message
/// for as long as the connection lasts. Returns nothing once the connection has ended.
std::optional<CopiesMessage> next_copies_message(int socket);
/// The same without waiting. Sets `ended` if the connection has ended, or brings what is no
/// message.
std::optional<CopiesMessage> copies_message_at_hand(int socket, bool& ended);

/// The end of a copy, for one thread.
class CopyAmongOthers {
 public:
  /// `gate` is the address of `paceline predict`, "NAME/I" for copy I. Throws kUnavailable if
  /// nobody listens there.
  explicit CopyAmongOthers(const std::string& gate);

  /// Waits until all copies are about to make the steps that are timed. Returns false if the copies
  /// have been stopped.
  bool wait_for_others();
  /// Tells the pace of the timed steps.
  void tell(const StepPace& pace);
  /// True once all copies have told their paces, or have been stopped.
  bool is_over() const;

 private:
  const FileDescriptor socket_;
  const int number_;
};

/// The paces of copies that have run at once, by copy; empty if they were not measured: `why` says
/// why not.
struct CopiesAnswer {
  std::vector<StepPace> paces;
  std::string why;
};
/// Asks the `paceline predict` that listens at `name` to run this many copies at once, and waits
/// for the answer. Throws kCancelled if `paceline predict` has ended.
CopiesAnswer run_copies(const std::string& name, int copies);

}  // namespace paceline
