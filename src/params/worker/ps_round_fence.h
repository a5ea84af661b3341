// The ps tasks as the fence of rounds that the workers commit among themselves: a worker's side.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "params/round_fence.h"
#include "params/wire/round_messages.h"
#include "params/worker/worker_context.h"

namespace paceline {

class PsRoundFence : public RoundFence {
 public:
  explicit PsRoundFence(WorkerContext& context) : context_(context) {}

  void begin(std::int64_t round) override;
  void wait_given() override;
  float commit(std::span<const std::int32_t> contributors, std::optional<double> squares) override;
  void lose(std::int64_t round) override;
  void wait_closed() override;
  void begin_again(const std::string& why, std::vector<std::int32_t> unreached) override {
    context_.driver.begin_again(why, {std::move(unreached)});
  }
  void check() const override;
  bool is_cut_off() const override;
  std::uint64_t ps_incarnation() const override;

 private:
  template <typename Predicate>
  void wait_for_ps(const char* what, Predicate&& come);
  bool is_done() const;
  bool lets_others_tell() const;
  template <typename Predicate>
  void tell_commit(Predicate&& known);
  [[noreturn]] void others_went_on(std::int64_t round) const;

  WorkerContext& context_;
  std::int64_t round_ = 0;                  // of the step that was begun last
  bool settled_ = false;                    // all that the last answers brought is of one round
  std::optional<std::uint64_t> committed_;  // the contributors of the last step, if it counts
  std::optional<CommittedRound> untold_;    // the others are to tell first
};

}  // namespace paceline
