// What all connections of one ps share: who takes part, the shard, and who is told what.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "net/link.h"
#include "params/protocol/membership.h"
#include "params/server/account.h"
#include "params/server/server.h"
#include "params/server/shard_saver.h"
#include "params/shard/apply_pool.h"
#include "params/shard/shard.h"
#include "params/wire/message.h"

namespace paceline {

class ServerPeer;

/// Calls may come from any thread. Its lock is held for small messages only, never while a rule is
/// applied.
class ServerJob {
 public:
  /// `wake` is called when `turn` has something to do; it must not block.
  ServerJob(const ServerOptions& options, std::function<void()> wake);
  ~ServerJob();

  Receiver* accept(std::shared_ptr<Connection> connection);

  // Calls of a connection; those that return a text say why it is refused.
  /// `busy`: it was told to come again.
  std::string greet(ServerPeer& peer, const Hello& hello, bool& busy);
  void declare(ServerPeer& peer, Declare declare);
  /// What the peer works on. Throws kFailedPrecondition unless it has agreed on the variables, or,
  /// when `initialised` is asked for, while they are not.
  Shard& shard_for(ServerPeer& peer, bool initialised);
  void refuse(ServerPeer& peer, const std::string& why);
  void initialise(ServerPeer& peer, std::int64_t global_step);
  bool begin_step(ServerPeer& peer, std::int64_t step);
  std::int64_t end_step(ServerPeer& peer, bool counts);
  void set_done(ServerPeer& peer);
  void say_goodbye(ServerPeer& peer);
  void closed(ServerPeer& peer, const Error& error);
  /// The last call of a connection that has closed: it may be destroyed meanwhile.
  void let_go(ServerPeer& peer);
  void find_file(ServerPeer& peer, const FindFile& file);
  void mark(ServerPeer& peer, std::uint64_t save);
  void save_shard(ServerPeer& peer, const std::string& path, std::uint64_t save);
  void take_state(ServerPeer& peer, std::vector<std::byte> bytes, std::uint64_t save);

  /// One turn of the main thread: closes who was refused or says nothing, tells workers what has
  /// changed. Returns when to call again at the latest.
  TimePoint turn(TimePoint now);
  Membership::End end(TimePoint now) const;
  std::string members() const;
  /// This ps was told to stop: its workers are told. False when there are none.
  bool ask_to_leave();
  bool all_gone() const;
  std::int64_t applied() const { return applied_; }
  std::int64_t global_step() const;
  /// Over links since the first contribution.
  struct Bytes {
    std::int64_t sent = 0, received = 0;
  };
  Bytes bytes() const;
  std::optional<MachineUse> use() const { return use_.measure(); }
  /// Some worker has asked that this ps polls.
  bool spins() const { return spinning_ > 0; }
  /// Another job has taken its place (any_job).
  bool given_up() const;
  bool counts_steps() const { return options_.task.index == 0; }
  ServerAccount& account() { return account_; }
  /// May be null.
  Timeline* timeline() const { return options_.timeline; }
  /// Of applying a piece's rule, by position; null without a timeline.
  const TimelineLabel* label(std::size_t position) const {
    return labels_.empty() ? nullptr : labels_[position];
  }
  void say(const std::string& line) const;
  void warn(const std::string& line) const;
  /// Empty while it waits for a job to serve.
  std::string id() const;

 private:
  std::string why_not(const Hello& hello) const;
  bool serves_another(const Hello& hello) const;
  void adopt(const Hello& hello);
  void turn_away(ServerPeer& peer);
  void check_variables(ServerPeer& peer);
  void agree(ServerPeer& peer);
  void refuse_locked(ServerPeer& peer, const std::string& why);
  /// Makes `call` send to the peer. What keeps it from that, too much that waits for the peer or
  /// memory that is out, ends the peer's connection, and is no error of whoever made the call.
  template <typename Call>
  void tell(ServerPeer& peer, Call&& call) {
    try {
      call();
    } catch (const std::exception& error) {
      give_up(peer, error.what());
    }
  }
  void give_up(ServerPeer& peer, const std::string& why);
  void forget_unidentified();
  void tell_job_state(TimePoint now);
  Bytes bytes_locked() const;
  void take_declaration(Declare declare);
  void ask_for_states(ServerPeer& chief, std::uint64_t save, SavedShard& what);
  /// Whether it is of the worker's last step.
  bool knows_state(int worker) const;
  void tell_initialised(ServerPeer& peer);
  std::string name() const { return options_.task.str(); }

  MembershipOptions membership_options() const;

  ServerOptions options_;  // of any_job: complete once a job is adopted
  const std::function<void()> wake_;
  const std::uint64_t incarnation_;
  ServerAccount account_;
  std::atomic<std::int64_t> applied_{0};
  std::atomic<int> spinning_{0};
  UseMeter use_;

  mutable std::mutex mutex_;
  Membership membership_;
  bool waits_for_job_;             // any_job, and nobody came yet
  bool given_up_ = false;          // another job takes its place
  std::uint64_t fingerprint_ = 0;  // of the adopted job's variables
  std::vector<std::unique_ptr<ServerPeer>> peers_;
  std::vector<ServerPeer*> closing_;
  std::optional<Declare> declared_;
  ApplyPool apply_pool_;
  std::unique_ptr<Shard> shard_;
  std::vector<const TimelineLabel*> labels_;
  bool initialised_ = false;
  JobState told_;
  Bytes bytes_gone_;                   // of connections that have ended
  std::optional<Bytes> bytes_before_;  // when use_ began
  struct KnownState {
    std::int64_t step = 0;
    std::shared_ptr<const std::vector<std::byte>> bytes;  // as it came; null: not known
  };
  std::vector<KnownState> states_;  // by worker
  ShardSaver saving_;               // last: its thread calls what is above
};

}  // namespace paceline
