#include "predict/learner_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <queue>
#include <random>
#include <utility>

#include "base/printed.h"
#include "predict/learner_rules.h"

namespace paceline {
namespace {

// So many contributions of all learners together are simulated, but no more of each than that, and
// at least so many.
constexpr double kContributions = 1e7, kMostOfEach = 10'000, kLeastOfEach = 20;
constexpr std::int64_t kStaleness = 3;
constexpr double kQuorum = 0.95;
// No step takes less than this part of the usual time.
constexpr double kLeastTime = 0.2;
// So few failures tell little about a strategy.
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
  double pace = 1;      // of its steps, as a part of the usual time
  double computed = 0;  // what is not decided yet
  std::uint32_t incarnation = 1;
};

/// One strategy in virtual time.
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
  // As many are away as at any other moment, and the others know of most of them.
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

  /// It failed some time ago, and is back after that time.
  void fail(int learner, double left_s) {
    turn(learner, Doing::kAway);
    const double ago = study_.restart_s - left_s;
    at(now_ + std::max(study_.notice_s - ago, 0.0), learner, Happens::kIsMissed);
    at(now_ + left_s, learner, Happens::kIsBack);
  }

  /// Ends what it did, and counts the time.
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
        // A failure loses what no others have.
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
        ++learner.incarnation;  // what it would have done does not happen
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

  // Contributions that are under way at the end are taken to count.
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
