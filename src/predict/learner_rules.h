// The rules by which contributions of many learners count, as the state machines of a run decide
// it: of learners of which nothing but the time is known, with one shard and no links.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace paceline {

/// The decisions of a rule about learners. The owner empties it.
struct LearnerDecisions {
  std::vector<int> counted;    // their contributions count
  std::vector<int> lost;       // theirs count nowhere
  std::vector<int> may_go_on;  // they may begin their next contribution
  void clear();
};

class LearnerRule {
 public:
  virtual ~LearnerRule() = default;
  /// A process of the learner is there. It is told when it may go on.
  virtual void joined(int learner, std::uint64_t incarnation, LearnerDecisions& out) = 0;
  /// It has values, and begins a contribution.
  virtual void begins(int) {}
  /// Its contribution is whole.
  virtual void contributed(int learner, LearnerDecisions& out) = 0;
  /// The others know that it is gone.
  virtual void left(int learner, LearnerDecisions& out) = 0;
};

/// Every contribution counts, and nobody waits.
std::unique_ptr<LearnerRule> async_rule();
/// The same, by BoundedStaleness: nobody is more than `lead` contributions ahead.
std::unique_ptr<LearnerRule> bounded_rule(int learners, std::int64_t lead);
/// Rounds of the contributions of so many learners, by RoundCoordinator; late ones count nowhere.
/// 0: of all that are there.
std::unique_ptr<LearnerRule> rounds_rule(int learners, int replicas);

}  // namespace paceline
