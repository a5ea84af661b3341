#include "predict/learner_rules.h"

#include "params/protocol/rounds.h"

namespace paceline {
namespace {

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
    std::int64_t step = 0, limit = -1;  // its next one, and the last that it may begin
    bool waits = false;
  };
  void release(int learner, LearnerDecisions& out) {
    learners_[std::size_t(learner)].waits = false;
    out.may_go_on.push_back(learner);
  }
  void tell(LearnerDecisions& out) {
    for (const AggregationOutbox::StepLimit& each : limits_.limits) {
      Learner& it = learners_[std::size_t(each.worker)];
      it.limit = each.own_step;
      if (it.waits && it.step <= it.limit) release(each.worker, out);
    }
    limits_.clear();
  }

  BoundedStaleness aggregation_;
  std::vector<Learner> learners_;
  AggregationOutbox limits_;
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

}  // namespace

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

}  // namespace paceline
