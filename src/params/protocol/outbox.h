// The actions that a state machine wants done: data without effects. Its driver does them, with
// links and threads for real, or with a heap of events in virtual time.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "params/wire/control_message.h"

namespace paceline {

/// One connection, as its driver has numbered it; of a worker's machine: the index of a ps.
using PeerId = std::uint64_t;

class Outbox {
 public:
  struct Send {
    PeerId to = 0;
    ControlMessage message;
  };
  /// The memory of the values is shared with the peer, if it is on this host.
  struct ShareValues {
    PeerId to = 0;
  };
  /// The connection is closed; what was sent to it before is given `patience` to arrive.
  struct Close {
    PeerId peer = 0;
    Duration patience{};
  };
  /// A connection is to be made; the answer is connected() or connect_failed().
  struct Connect {
    PeerId peer = 0;
  };
  /// A line for the user: before, the peer in words, after.
  struct Line {
    bool warning = false;
    std::string before;
    PeerId about = kNobody;
    std::string after;
  };
  /// The driver looks whether it sees the file, and answers kFoundFile.
  struct Find {
    PeerId asker = 0;
    FindFile file;
  };
  /// The driver keeps what its shard holds now.
  struct Mark {
    PeerId asker = 0;
    SavedShard what;
  };
  /// The driver writes what is kept, and answers kSaved.
  struct Save {
    PeerId asker = 0;
    std::string path;
    std::uint64_t save = 0;
  };
  /// The connection of `from` is one of `to` from now on, which was cut off. It sends nothing but
  /// answers to a hello until GoOn.
  struct Attach {
    PeerId from = 0, to = 0;
  };
  /// Numbered messages flow; the peer has handled so many.
  struct GoOn {
    PeerId peer = 0;
    std::uint64_t handled = 0;
  };
  /// The peer whose connection was cut will not come back: what was kept for it goes.
  struct Forget {
    PeerId peer = 0;
  };
  /// Contributions are applied, or dropped, and answered; then the workers are told. The driver
  /// carries such words out in their order, and marks between them.
  struct Decide {
    RoundDecision decision;
    struct Told {
      PeerId to = 0;
      std::uint64_t step = 0;
      StepDone done;
    };
    std::vector<Told> told;
    /// Workers that have asked for it are told then that this round is open.
    struct Open {
      PeerId to = 0;
      std::int64_t round = 0;
    };
    std::vector<Open> open;
  };
  /// The mean of the round is applied with this scale.
  struct Clip {
    RoundScale scale;
  };
  using Action = std::variant<Send, ShareValues, Close, Connect, Line, Find, Mark, Save, Attach,
                              GoOn, Forget, Decide, Clip>;
  static constexpr PeerId kNobody = ~PeerId{0};
  /// The name of ps 0 for the others, which connect to it.
  static constexpr PeerId kCoordinator = kNobody - 1;

  void send(PeerId to, MessageType type, ControlMessage::Body body = {}, std::uint64_t step = 0) {
    actions_.push_back(Send{to, {type, std::move(body), step}});
  }
  void share_values(PeerId to) { actions_.push_back(ShareValues{to}); }
  void close(PeerId peer, Duration patience) { actions_.push_back(Close{peer, patience}); }
  void connect(PeerId peer) { actions_.push_back(Connect{peer}); }
  void say(std::string line) { actions_.push_back(Line{false, std::move(line), kNobody, {}}); }
  void warn(std::string before, PeerId about, std::string after) {
    actions_.push_back(Line{true, std::move(before), about, std::move(after)});
  }
  void add(Action action) { actions_.push_back(std::move(action)); }

  /// The actions in their order. Carrying one out may add others at the end.
  std::vector<Action>& actions() { return actions_; }
  bool empty() const { return actions_.empty(); }
  void clear() { actions_.clear(); }

 private:
  std::vector<Action> actions_;
};

}  // namespace paceline
