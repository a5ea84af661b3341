// The ps tasks of a job with hybrid variables, in virtual time: the coordinator of their rounds,
// and each worker's side of them, as worker/ps_round_fence has it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/virtual_time.h"
#include "params/protocol/rounds.h"
#include "params/protocol/testing/virtual_link.h"

namespace paceline {

class VirtualFence {
 public:
  using Workers = std::vector<std::int32_t>;
  struct World {
    /// Calls `act` when the process goes on, if it still lives.
    std::function<void(std::uint64_t process, std::function<void()> act)> on;
    /// Something has changed for the process.
    std::function<void(std::uint64_t process)> look;
    /// The others went on without the process.
    std::function<void(std::uint64_t process)> left_behind;
    std::function<void(const std::string&)> complain;
    std::function<Duration()> delay;
  };
  VirtualFence(VirtualTime& time, int workers, World world);

  void started(std::uint64_t process, int worker);
  /// Its connections have ended; it may come back, unless it is dead.
  void cut_off(std::uint64_t process, bool dead);
  void came_back(std::uint64_t process);
  /// Nothing passes between the process and the ps tasks until mend(), and nothing is lost.
  void cut(std::uint64_t process) { workers_.at(process).cut = true; }
  void mend(std::uint64_t process);

  // A worker's calls for one step, in this order.
  /// True once the process has the values that so many rounds have left.
  bool begin(std::uint64_t process, std::int64_t round);
  void give(std::uint64_t process);
  bool given(std::uint64_t process) const;
  void commit(std::uint64_t process, const Workers& contributors);
  /// Its group has thrown the step away, and the process has the values of that round.
  void lose(std::uint64_t process, std::int64_t round);

  /// The contributors of each round that is closed.
  const std::vector<Workers>& closed() const { return closed_; }

 private:
  /// A worker's side.
  struct Worker {
    int index = 0;
    std::uint64_t process = 0;
    std::unique_ptr<VirtualLink> to, from;
    std::int64_t step = -1, round = -1;  // of the contribution under way, or the last one
    bool sent = false, given = false, done = true;
    bool settled = false;                // what it has is of one round
    std::optional<std::int64_t> awaits;  // the round that it has asked for
    std::int64_t rounds = 0;             // as it was told last
    std::int64_t begun = -1;             // the round that it may contribute to
    Workers named, counted;              // the contributors of its commit, and of the round
    bool told = true;                    // its commit
    bool cut = false;
    std::vector<std::function<void()>> held;  // what arrives once it is not cut any more
  };
  void arrive(std::uint64_t process, const std::function<void()>& act);
  void tell(Worker& worker, std::function<void()> act);
  void answer(std::uint64_t process, std::function<void(Worker&)> act);
  void tell_commit(Worker& worker);
  void carry_out(RoundCoordinator::Decisions& decisions);
  void answer_awaiting();
  template <typename Act>
  void coordinate(Act&& act);

  VirtualTime& time_;
  const World world_;
  RoundCoordinator coordinator_;
  std::map<std::uint64_t, Worker> workers_;      // by process
  std::map<std::uint64_t, std::int64_t> asked_;  // by process: the round that it waits for
  std::vector<Workers> closed_;
};

}  // namespace paceline
