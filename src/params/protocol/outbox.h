// The actions that a state machine asks for: data without effects. A driver carries them out,
// either with real links and threads, or with a heap of events in virtual time.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "params/wire/control_message.h"

namespace paceline {

/// Names a connection by the number that the driver has given it. For the state machine of a
/// worker, this number is the index of the ps or of the other worker.
using PeerId = std::uint64_t;

class Outbox {
 public:
  struct Send {
    PeerId to = 0;
    ControlMessage message;
  };
  /// Share the memory of the values with the peer, if it is on this host.
  struct ShareValues {
    PeerId to = 0;
  };
  /// Close the connection; messages sent before have `patience` to arrive.
  struct Close {
    PeerId peer = 0;
    Duration patience{};
  };
  /// Make a connection; connected() or connect_failed() is the answer.
  struct Connect {
    PeerId peer = 0;
  };
  /// A line for the user: the text before the peer, the peer in words, the text after.
  struct Line {
    bool warning = false;
    std::string before;
    PeerId about = kNobody;
    std::string after;
  };
  /// Look whether this host sees the file, and answer kFoundFile.
  struct Find {
    PeerId asker = 0;
    FindFile file;
  };
  /// Keep the present content of the shard.
  struct Mark {
    PeerId asker = 0;
    SavedShard what;
  };
  /// Write the kept content, and answer kSaved.
  struct Save {
    PeerId asker = 0;
    std::string path;
    std::uint64_t save = 0;
  };
  /// The connection of `from` now belongs to `to`, which was cut off. Until GoOn, `to` may send
  /// only answers to a hello.
  struct Attach {
    PeerId from = 0, to = 0;
  };
  /// Send the peer numbered messages from now on, after the first `handled`, which the peer has
  /// handled.
  struct GoOn {
    PeerId peer = 0;
    std::uint64_t handled = 0;
  };
  /// The peer whose connection was cut will not come back: free what is kept for it.
  struct Forget {
    PeerId peer = 0;
  };
  /// Apply or drop contributions and answer them; then tell the workers in `told`. The driver
  /// carries out decisions and marks in the order in which it gets them.
  struct Decide {
    RoundDecision decision;
    struct Told {
      PeerId to = 0;
      std::uint64_t step = 0;
      StepDone done;
    };
    std::vector<Told> told;
    /// A worker that has asked about a round. Once the decision is carried out, tell the worker
    /// that `round` is open.
    struct Open {
      PeerId to = 0;
      std::int64_t round = 0;
    };
    std::vector<Open> open;
  };
  /// Apply the mean of the round with this scale.
  struct Clip {
    RoundScale scale;
  };
  using Action = std::variant<Send, ShareValues, Close, Connect, Line, Find, Mark, Save, Attach,
                              GoOn, Forget, Decide, Clip>;
  static constexpr PeerId kNobody = ~PeerId{0};
  /// Names ps 0 in the outbox of another ps, which connects to ps 0.
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

  /// Returns the actions in their order. While the driver carries out an action, new ones may be
  /// added at the end.
  std::vector<Action>& actions() { return actions_; }
  bool empty() const { return actions_.empty(); }
  void clear() { actions_.clear(); }

 private:
  std::vector<Action> actions_;
};

}  // namespace paceline
