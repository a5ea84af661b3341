#include "predict/learner_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numbers>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include "base/printed.h"
#include "params/protocol/rounds.h"

namespace paceline {
namespace {

// The rules that decide which contributions of many learners count. They call the state machines of
// a run (BoundedStaleness, RoundCoordinator), with one shard. Only the learners' times are
// simulated, not the links.

/// The decisions of a rule about learners. A rule adds to the lists; its caller empties them.
struct LearnerDecisions {
  std::vector<int> counted;    // learners whose contributions count
  std::vector<int> lost;       // learners whose contributions count nowhere
  std::vector<int> may_go_on;  // learners that may begin their next contribution
  void clear();
};

class LearnerRule {
 public:
  virtual ~LearnerRule() = default;
  /// A process of the learner has started. If it may go on, adds it to out.may_go_on.
  virtual void joined(int learner, std::uint64_t incarnation, LearnerDecisions& out) = 0;
  /// The learner has values, and begins a contribution.
  virtual void begins(int) {}
  /// The learner's contribution is complete.
  virtual void contributed(int learner, LearnerDecisions& out) = 0;
  /// The other learners know that this learner is gone.
  virtual void left(int learner, LearnerDecisions& out) = 0;
};

/// Every contribution counts, and nobody waits.
std::unique_ptr<LearnerRule> async_rule();
/// Every contribution counts. BoundedStaleness keeps each learner at most `lead` contributions
/// ahead of the slowest one.
std::unique_ptr<LearnerRule> bounded_rule(int learners, std::int64_t lead);
/// Rounds of `replicas` contributions, by RoundCoordinator; late contributions do not count. If
/// `replicas` is 0, a round waits for all learners that are present.
std::unique_ptr<LearnerRule> rounds_rule(int learners, int replicas);

class AsyncRule : public LearnerRule {
 public:
  void joined(int learner, std::uint64_t, LearnerDecisions& out) override {
    out.may_go_on.push_back(learner);
  }
  void contributed(int learner, LearnerDecisions& out) override {
    out.counted.push_back(learner);
    out.may_go_on.push_back(learner);
  }
  void left(int, LearnerDecisions&) override {}
};

class BoundedRule : public LearnerRule {
 public:
  BoundedRule(int learners, std::int64_t lead)
      : aggregation_(lead), learners_(std::size_t(learners)) {}

  void joined(int learner, std::uint64_t, LearnerDecisions& out) override {
    Learner& it = learners_[std::size_t(learner)];
    it.waits = true;
    it.limit = -1;
    aggregation_.joined(learner, it.step, limits_);
    tell(out);
  }
  void contributed(int learner, LearnerDecisions& out) override {
    Learner& it = learners_[std::size_t(learner)];
    it.waits = true;
    out.counted.push_back(learner);
    aggregation_.ended(learner, it.step++, limits_);
    if (it.step <= it.limit) release(learner, out);
    tell(out);
  }
  void left(int learner, LearnerDecisions& out) override {
    learners_[std::size_t(learner)].waits = false;
    aggregation_.left(learner, limits_);
    tell(out);
  }

 private:
  struct Learner {
    std::int64_t step = 0, limit = -1;  // its next step, and the last step that it may begin
    bool waits = false;
  };
  void release(int learner, LearnerDecisions& out) {
    learners_[std::size_t(learner)].waits = false;
    out.may_go_on.push_back(learner);
  }
  void tell(LearnerDecisions& out) {
    for (const StepLimit& each : limits_) {
      Learner& it = learners_[std::size_t(each.worker)];
      it.limit = each.own_step;
      if (it.waits && it.step <= it.limit) release(each.worker, out);
    }
    limits_.clear();
  }

  BoundedStaleness aggregation_;
  std::vector<Learner> learners_;
  StepLimits limits_;
};

class RoundsRule : public LearnerRule {
 public:
  RoundsRule(int learners, int replicas)
      : coordinator_({.workers = learners, .replicas = replicas}),
        learners_(std::size_t(learners)) {}

  void joined(int learner, std::uint64_t incarnation, LearnerDecisions& out) override {
    learners_[std::size_t(learner)].incarnation = incarnation;
    coordinator_.joined(learner, incarnation, decisions_);
    tell(out);
    out.may_go_on.push_back(learner);
  }
  void begins(int learner) override {
    learners_[std::size_t(learner)].round = coordinator_.open_round();
  }
  void contributed(int learner, LearnerDecisions& out) override {
    Learner& it = learners_[std::size_t(learner)];
    coordinator_.whole(0,
                       {.worker = learner,
                        .incarnation = it.incarnation,
                        .step = it.step++,
                        .round = it.round,
                        .examples = 1},
                       decisions_);
    tell(out);
  }
  void left(int learner, LearnerDecisions& out) override {
    coordinator_.left(learner, decisions_);
    tell(out);
  }

 private:
  struct Learner {
    std::uint64_t incarnation = 0;
    std::int64_t step = 0, round = 0;
  };
  void tell(LearnerDecisions& out) {
    for (const RoundDecision& each : decisions_) {
      for (const RoundContribution& it : each.contributors) out.counted.push_back(it.worker);
      for (const RoundContribution& it : each.dropped) out.lost.push_back(it.worker);
      for (const RoundContribution& it : each.displaced) out.lost.push_back(it.worker);
      for (const auto* answered : {&each.contributors, &each.dropped}) {
        for (const RoundContribution& it : *answered) {
          if (it.incarnation == learners_[std::size_t(it.worker)].incarnation) {
            out.may_go_on.push_back(it.worker);
          }
        }
      }
    }
    decisions_.clear();
  }

  RoundCoordinator coordinator_;
  std::vector<Learner> learners_;
  RoundCoordinator::Decisions decisions_;
};

void LearnerDecisions::clear() {
  counted.clear();
  lost.clear();
  may_go_on.clear();
}

std::unique_ptr<LearnerRule> async_rule() { return std::make_unique<AsyncRule>(); }

std::unique_ptr<LearnerRule> bounded_rule(int learners, std::int64_t lead) {
  return std::make_unique<BoundedRule>(learners, lead);
}

std::unique_ptr<LearnerRule> rounds_rule(int learners, int replicas) {
  return std::make_unique<RoundsRule>(learners, replicas);
}

// The simulation makes about this many contributions of all learners together, but each learner
// makes at least kLeastOfEach and at most kMostOfEach.
constexpr double kContributions = 1e7, kMostOfEach = 10'000, kLeastOfEach = 20;
constexpr std::int64_t kStaleness = 3;
constexpr double kQuorum = 0.95;
// No step takes less than this fraction of the usual time.
constexpr double kLeastTime = 0.2;
// If there were fewer failures than this, they tell little about a strategy.
constexpr std::int64_t kFewFailures = 20;

enum class Doing : std::uint8_t { kWaits, kExchanges, kComputes, kAway };

enum class Happens : std::uint8_t { kHasValues, kContributes, kFails, kIsMissed, kIsBack };

struct Happening {
  double at = 0;
  int learner = 0;
  Happens what = Happens::kHasValues;
  std::uint32_t incarnation = 0;
  bool operator>(const Happening& other) const { return at > other.at; }
};

struct Learner {
  Doing doing = Doing::kWaits;
  double since = 0;
  // The time of the learner's steps, relative to the usual time of a step.
  double pace = 1;
  double computed = 0;  // seconds of work whose contribution is not yet decided
  std::uint32_t incarnation = 1;
};

/// Runs one strategy in virtual time.
class LearnersAtWork {
 public:
  LearnersAtWork(const LearnerStudy& study, LearnerRule& rule, int steps_of_contribution)
      : study_(study),
        rule_(rule),
        steps_(steps_of_contribution),
        random_(study.seed),
        learners_(std::size_t(study.learners)) {
    const double of_each = std::clamp(kContributions / study.learners, kLeastOfEach, kMostOfEach);
    times_.seconds = of_each * (steps_ * study.step_s + study.exchange_s);
  }

  LearnerTimes run() {
    begin();
    while (!queue_.empty() && queue_.top().at < times_.seconds) {
      const Happening next = queue_.top();
      queue_.pop();
      now_ = next.at;
      if (next.incarnation == learners_[std::size_t(next.learner)].incarnation) handle(next);
      carry_out();
    }
    now_ = times_.seconds;
    return finish();
  }

 private:
  // At the beginning, as many learners are away as at any later time, and the others already know
  // of most of these failures.
  void begin() {
    const double all = study_.mtbf_s + study_.restart_s;
    const double away = study_.mtbf_s > 0 ? study_.restart_s / all : 0;
    for (int i = 0; i < study_.learners; ++i) {
      Learner& learner = learners_[std::size_t(i)];
      learner.pace = 1 + study_.uneven * std::numbers::sqrt2 / 2 * normal_(random_);
      rule_.joined(i, learner.incarnation, decisions_);
      if (uniform_(random_) < away) {
        fail(i, uniform_(random_) * study_.restart_s);
      } else {
        lives(i);
      }
    }
    carry_out();
  }

  void at(double when, int learner, Happens what) {
    if (when < times_.seconds) {
      queue_.push({when, learner, what, learners_[std::size_t(learner)].incarnation});
    }
  }

  void lives(int learner) {
    if (study_.mtbf_s <= 0) return;
    at(now_ + std::exponential_distribution(1 / study_.mtbf_s)(random_), learner, Happens::kFails);
  }

  /// Makes the learner one that failed some time ago, and that returns after `left_s` seconds.
  void fail(int learner, double left_s) {
    turn(learner, Doing::kAway);
    const double ago = study_.restart_s - left_s;
    at(now_ + std::max(study_.notice_s - ago, 0.0), learner, Happens::kIsMissed);
    at(now_ + left_s, learner, Happens::kIsBack);
  }

  /// Counts the time of the learner's activity that ends now, and begins the activity `doing`.
  void turn(int index, Doing doing) {
    Learner& learner = learners_[std::size_t(index)];
    const double spent = now_ - std::exchange(learner.since, now_);
    switch (std::exchange(learner.doing, doing)) {
      case Doing::kWaits:
        times_.waiting += spent;
        break;
      case Doing::kExchanges:
        times_.exchanging += spent;
        break;
      case Doing::kAway:
        times_.away += spent;
        break;
      case Doing::kComputes:
        // A learner that fails loses the work that it was doing, since no other task has that work.
        (doing == Doing::kAway ? times_.lost : learner.computed) += spent;
        break;
    }
  }

  void handle(const Happening& it) {
    Learner& learner = learners_[std::size_t(it.learner)];
    switch (it.what) {
      case Happens::kHasValues:
        turn(it.learner, Doing::kComputes);
        rule_.begins(it.learner);
        return at(now_ + computing_seconds(learner), it.learner, Happens::kContributes);
      case Happens::kContributes:
        turn(it.learner, Doing::kWaits);
        return rule_.contributed(it.learner, decisions_);
      case Happens::kFails:
        ++times_.failures;
        ++learner.incarnation;  // cancels what it would have done
        return fail(it.learner, study_.restart_s);
      case Happens::kIsMissed:
        if (learner.doing == Doing::kAway) rule_.left(it.learner, decisions_);
        return;
      case Happens::kIsBack:
        turn(it.learner, Doing::kWaits);
        rule_.joined(it.learner, learner.incarnation, decisions_);
        return lives(it.learner);
    }
  }

  double computing_seconds(const Learner& learner) {
    const double deviation = study_.uneven * std::numbers::sqrt2 / 2 / std::sqrt(double(steps_));
    const double times = learner.pace + deviation * normal_(random_);
    return steps_ * study_.step_s * std::max(times, kLeastTime);
  }

  void carry_out() {
    for (const int i : decisions_.counted) settle(i, times_.useful);
    for (const int i : decisions_.lost) settle(i, times_.lost);
    for (const int i : decisions_.may_go_on) {
      if (learners_[std::size_t(i)].doing != Doing::kWaits) continue;
      turn(i, Doing::kExchanges);
      at(now_ + study_.exchange_s, i, Happens::kHasValues);
    }
    decisions_.clear();
  }

  void settle(int learner, double& into) {
    into += std::exchange(learners_[std::size_t(learner)].computed, 0);
  }

  // Returns the times as shares of the whole. Work that is not yet decided at the end counts as
  // useful.
  LearnerTimes finish() {
    for (int i = 0; i < study_.learners; ++i) {
      turn(i, Doing::kWaits);
      settle(i, times_.useful);
    }
    const double all = times_.seconds * study_.learners;
    for (double* share :
         {&times_.useful, &times_.waiting, &times_.exchanging, &times_.lost, &times_.away}) {
      *share /= all;
    }
    times_.steps_per_s = times_.useful * study_.learners / study_.step_s;
    return times_;
  }

  const LearnerStudy study_;
  LearnerRule& rule_;
  const int steps_;
  std::mt19937_64 random_;
  std::normal_distribution<> normal_;
  std::uniform_real_distribution<> uniform_;
  std::vector<Learner> learners_;
  std::priority_queue<Happening, std::vector<Happening>, std::greater<>> queue_;
  LearnerDecisions decisions_;
  LearnerTimes times_;
  double now_ = 0;
};

}  // namespace

std::vector<LearnerTimes> study_learners(const LearnerStudy& study,
                                         const std::function<void(const std::string&)>& progress) {
  const int n = study.learners;
  struct Strategy {
    std::string name;
    std::unique_ptr<LearnerRule> rule;
    int steps;
  };
  std::vector<Strategy> strategies;
  strategies.push_back({"async", async_rule(), 1});
  strategies.push_back({fmt::format("ssp {}", kStaleness), bounded_rule(n, kStaleness), 1});
  strategies.push_back({"sync", rounds_rule(n, 0), 1});
  const int quorum = int(std::ceil(kQuorum * n));
  if (quorum < n) {
    strategies.push_back({fmt::format("sync of {}", quorum), rounds_rule(n, quorum), 1});
  }
  const std::string local = fmt::format("local_sgd, H = {}", study.local_steps);
  strategies.push_back({local, rounds_rule(n, 0), study.local_steps});
  strategies.push_back({local + ", no rounds", async_rule(), study.local_steps});
  std::vector<LearnerTimes> all;
  for (Strategy& each : strategies) {
    if (progress) progress(each.name);
    all.push_back(LearnersAtWork(study, *each.rule, each.steps).run());
    all.back().strategy = each.name;
  }
  std::ranges::stable_sort(all, std::greater(), &LearnerTimes::useful);
  return all;
}

std::string learners_text(const LearnerStudy& study, const std::vector<LearnerTimes>& times) {
  std::string text =
      fmt::format("{:<28}  {:>10}  {:>7}  {:>7}  {:>10}  {:>7}  {:>7}  {:>8}\n", "strategy",
                  "steps/s", "useful", "waiting", "exchanging", "lost", "away", "failures");
  for (const LearnerTimes& it : times) {
    text += fmt::format(
        "{:<28}  {:>10}  {:>6.1f}%  {:>6.1f}%  {:>9.1f}%  {:>6.1f}%  {:>6.1f}%  {:>8}\n",
        it.strategy, rounded(it.steps_per_s), it.useful * 100, it.waiting * 100,
        it.exchanging * 100, it.lost * 100, it.away * 100, it.failures);
  }
  text += fmt::format(
      "\n{}. Useful is the share of their time in which they compute what "
      "counts;\nhow much a step learns differs (docs/strategies.md).\n",
      counted(study.learners, "learner"));
  const bool few =
      std::ranges::any_of(times, [](const LearnerTimes& it) { return it.failures < kFewFailures; });
  if (study.mtbf_s > 0 && few) {
    text += "So few failures tell little: try more learners, or a smaller --mtbf-hours.\n";
  }
  return text;
}

}  // namespace paceline
