#include "params/protocol/testing/virtual_rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <random>
#include <set>
#include <tuple>
#include <utility>

#include "params/protocol/rounds.h"

namespace paceline {
namespace {

using Plant = VirtualRoundsOptions::Plant;
using Summed = VirtualRoundsResult::Summed;

struct Contribution {
  int worker = 0;
  std::uint64_t incarnation = 0;
  std::int64_t round = 0;
  auto operator<=>(const Contribution&) const = default;
};

struct Shard {
  RoundsAggregation machine;
  std::map<std::pair<std::int64_t, int>, std::uint64_t> kept;  // by round and worker
  std::set<Contribution> waiting;                              // for an answer
  std::vector<std::vector<Summed>> sums;
  std::int64_t heard_at = 0;  // when the last message of the coordinator comes
};

struct Worker {
  bool alive = false, member = false;  // member: as the coordinator sees it
  std::uint64_t incarnation = 0, joined = 0;
  std::int64_t round = -1, next = 0;
  std::int64_t greets_at = 0;  // when the coordinator hears of the process
  int answers = 0;
};

class VirtualRounds {
 public:
  explicit VirtualRounds(const VirtualRoundsOptions& options)
      : options_(options),
        random_(options.seed),
        coordinator_(options.shards, options.workers, options.k),
        shards_(std::size_t(options.shards)),
        workers_(std::size_t(options.workers)) {
    for (int worker = 0; worker < options.workers; ++worker) {
      after(happens(options.latecomers) ? 400 : 5, [this, worker] { start(worker); });
      if (happens(options.deaths)) after(800, [this, worker] { die(worker); });
      if (happens(options.cuts)) after(800, [this, worker] { cut(worker); });
    }
  }

  VirtualRoundsResult run() {
    while (!events_.empty() && result_.errors.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      ++result_.events;
      mix(std::uint64_t(now_));
      event.act();
    }
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      if (workers_[i].alive) fail(fmt::format("worker:{} waits for ever", i));
    }
    for (const Shard& shard : shards_) {
      if (shard.sums != shards_.front().sums) fail("the shards have summed other contributions");
    }
    for (const auto& [contribution, shards] : ended_) {
      if (shards < options_.shards) ++result_.partial;
    }
    result_.rounds = shards_.front().sums;
    return std::move(result_);
  }

 private:
  struct Event {
    std::int64_t at;
    std::uint64_t number;
    std::function<void()> act;
    bool operator<(const Event& other) const {  // the earliest of a heap is on top
      return std::tie(at, number) > std::tie(other.at, other.number);
    }
  };

  void fail(const std::string& why) {
    result_.errors.push_back(fmt::format("seed {} at {}: {}", options_.seed, now_, why));
  }
  void mix(std::uint64_t number) {
    result_.hash = (result_.hash ^ number) * 0x100000001b3u + 0x9e3779b97f4a7c15u;
  }
  bool happens(double probability) { return double(random_() >> 11) * 0x1p-53 < probability; }
  std::int64_t delay(std::int64_t most) {
    return std::int64_t(random_() % std::uint64_t(most + 1));
  }
  void at(std::int64_t time, std::function<void()> act) {
    events_.push({time, ++number_, std::move(act)});
  }
  void after(std::int64_t most, std::function<void()> act) {
    at(now_ + delay(most), std::move(act));
  }
  bool is_current(int worker, std::uint64_t incarnation) const {
    const Worker& it = workers_[std::size_t(worker)];
    return it.alive && it.incarnation == incarnation;
  }

  // Workers.

  void start(int worker) {
    Worker& it = workers_[std::size_t(worker)];
    it.alive = true;
    it.round = -1;
    it.greets_at = now_ + delay(10);
    at(it.greets_at, [this, worker, incarnation = ++it.incarnation] { join(worker, incarnation); });
  }

  void die(int worker) {
    Worker& it = workers_[std::size_t(worker)];
    if (!std::exchange(it.alive, false)) return;
    at(std::max(it.greets_at, now_ + delay(100)),
       [this, worker, incarnation = it.incarnation] { lose(worker, incarnation); });
    if (happens(options_.restarts)) after(150, [this, worker] { start(worker); });
  }

  void cut(int worker) {
    const std::uint64_t incarnation = workers_[std::size_t(worker)].joined;
    lose(worker, incarnation);
    after(60, [this, worker, incarnation] {
      const Worker& it = workers_[std::size_t(worker)];
      if (is_current(worker, incarnation) && it.joined == incarnation) join(worker, incarnation);
    });
  }

  void begin(int worker, std::uint64_t incarnation, std::int64_t round) {
    if (!is_current(worker, incarnation)) return;
    Worker& it = workers_[std::size_t(worker)];
    if (round >= options_.rounds || (round > 0 && happens(options_.leaves))) {
      it.alive = false;
      return after(10, [this, worker, incarnation] { lose(worker, incarnation); });
    }
    it.round = round;
    it.next = it.answers = 0;
    for (int shard = 0; shard < options_.shards; ++shard) {
      const std::int64_t sent = now_ + delay(happens(0.1) ? 60 : 10);
      at(sent, [=, this] { send(shard, {worker, incarnation, round}); });
    }
  }

  /// A worker that dies from here on sends the end of it no more.
  void send(int shard, Contribution it) {
    if (!is_current(it.worker, it.incarnation)) return;
    const std::int64_t arrival = now_ + delay(10);
    at(arrival, [=, this] { arrive(shard, it); });
    after(5, [=, this] {
      if (is_current(it.worker, it.incarnation)) {
        at(std::max(arrival, now_ + delay(10)), [=, this] { end(shard, it); });
      }
    });
  }

  void answer(const Contribution& it, std::int64_t open_round) {
    after(10, [=, this] {
      if (!is_current(it.worker, it.incarnation)) return;
      Worker& worker = workers_[std::size_t(it.worker)];
      if (worker.round != it.round) return fail("an answer to another round");
      worker.next = std::max(worker.next, open_round);
      if (++worker.answers == options_.shards) begin(it.worker, it.incarnation, worker.next);
    });
  }

  // Shards.

  void arrive(int index, const Contribution& it) {
    Shard& shard = shards_[std::size_t(index)];
    const bool early = it.round > shard.machine.open_round();
    if (early) ++result_.early;
    fates_[{it, index}] = options_.plant == Plant::kDropsEarly && early
                              ? Fate::kDrop
                              : shard.machine.arrived(it.worker, it.round);
  }

  void end(int index, const Contribution& it) {
    Shard& shard = shards_[std::size_t(index)];
    AggregationOutbox out;
    if (fates_.at({it, index}) == Fate::kKeep) shard.machine.ended(it.worker, it.round, out);
    if (out.whole.empty()) {
      ++result_.late;
      return answer(it, shard.machine.open_round());
    }
    ++ended_[it];
    shard.waiting.insert(it);
    std::uint64_t& kept = shard.kept[{it.round, it.worker}];
    kept = std::max(kept, it.incarnation);
    after(10, [=, this] { whole(index, it); });
  }

  void closed(int index, const RoundClosed& round) {
    Shard& shard = shards_[std::size_t(index)];
    AggregationOutbox out;
    shard.machine.closed(round.round, round.contributors, out);
    if (out.sums.size() != 1) return fail("a round is closed out of its order");
    std::vector<Summed> summed;
    if (options_.plant == Plant::kSumsWhatItHas) {
      for (const auto& [key, incarnation] : shard.kept) {
        if (key.first == round.round) summed.push_back({key.second, incarnation});
      }
    } else {
      for (const int worker : out.sums.front().contributors) {
        const auto found = shard.kept.find({round.round, worker});
        if (found == shard.kept.end()) return fail("a shard has not what is to be summed");
        summed.push_back({worker, found->second});
      }
    }
    shard.sums.push_back(std::move(summed));
    std::erase_if(shard.kept, [&](const auto& kept) { return kept.first.first == round.round; });
    for (const Contribution& it : std::set(shard.waiting)) {
      if (it.round != round.round) continue;
      shard.waiting.erase(it);
      answer(it, shard.machine.open_round());
    }
  }

  // The coordinator.

  void join(int worker, std::uint64_t incarnation) {
    Worker& it = workers_[std::size_t(worker)];
    if (incarnation < it.joined) return;
    const bool again = incarnation == it.joined;
    if (it.member) lose(worker, it.joined);
    const std::int64_t round = coordinator_.joined(worker, incarnation);
    it.joined = incarnation;
    it.member = true;
    if (!again) after(10, [=, this] { begin(worker, incarnation, round); });
  }

  void lose(int worker, std::uint64_t incarnation) {
    Worker& it = workers_[std::size_t(worker)];
    if (incarnation != it.joined || !std::exchange(it.member, false)) return;
    std::vector<RoundClosed> out;
    coordinator_.left(worker, out);
    tell(out);
  }

  void whole(int shard, const Contribution& it) {
    const std::uint64_t joined = workers_[std::size_t(it.worker)].joined;
    const bool counts = it.round >= coordinator_.open_round() && it.incarnation == joined;
    if (counts) told_[it].insert(shard);
    const bool forgets = options_.plant == Plant::kForgetIncarnation;
    const std::uint64_t incarnation = forgets ? joined : it.incarnation;
    std::vector<RoundClosed> out;
    coordinator_.whole(shard, it.worker, incarnation, it.round, out);
    for (int other = 0; other < options_.shards; ++other) {
      if (options_.plant != Plant::kOneShardIsEnough) break;
      coordinator_.whole(other, it.worker, incarnation, it.round, out);
    }
    tell(out);
  }

  void tell(const std::vector<RoundClosed>& closed_rounds) {
    for (const RoundClosed& round : closed_rounds) {
      check(round);
      for (int i = 0; i < options_.shards; ++i) {
        Shard& shard = shards_[std::size_t(i)];
        shard.heard_at = std::max(shard.heard_at, now_ + delay(happens(0.1) ? 80 : 10));
        at(shard.heard_at, [=, this] { closed(i, round); });
      }
    }
  }

  void check(const RoundClosed& round) {
    std::vector<int> whole;
    for (const auto& [it, shards] : told_) {
      if (it.round != round.round || int(shards.size()) < options_.shards) continue;
      whole.push_back(it.worker);
      if (!is_current(it.worker, it.incarnation)) ++result_.of_dead;
    }
    std::erase_if(told_, [&](const auto& told) { return told.first.round <= round.round; });
    if (whole != round.contributors) fail("the contributors are not those that are whole");
    const auto members = std::ranges::count_if(workers_, [](const auto& it) { return it.member; });
    if (std::ptrdiff_t(whole.size()) < std::min<std::ptrdiff_t>(options_.k, members)) {
      fail("a round is closed with too few contributions");
    }
    mix(std::uint64_t(round.round));
    for (const int worker : round.contributors) mix(std::uint64_t(worker));
  }

  const VirtualRoundsOptions options_;
  std::mt19937_64 random_;
  std::priority_queue<Event> events_;
  std::int64_t now_ = 0;
  std::uint64_t number_ = 0;
  RoundCoordinator coordinator_;
  std::vector<Shard> shards_;
  std::vector<Worker> workers_;
  std::map<std::pair<Contribution, int>, Fate> fates_;
  std::map<Contribution, int> ended_;
  std::map<Contribution, std::set<int>> told_;  // where what is whole
  VirtualRoundsResult result_;
};

}  // namespace

VirtualRoundsResult run_virtual_rounds(const VirtualRoundsOptions& options) {
  return VirtualRounds(options).run();
}

}  // namespace paceline
