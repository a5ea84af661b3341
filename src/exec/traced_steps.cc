#include "exec/traced_steps.h"

#include <string>
#include <utility>
#include <vector>

namespace paceline {
namespace {

constexpr std::int64_t kUnknown = -1;  // the number of rows is that of the ids

class TracedSteps : public StoreSteps {
 public:
  TracedSteps(std::unique_ptr<StoreSteps> steps, std::span<const VariableSpec> variables,
              Timeline& timeline)
      : steps_(std::move(steps)),
        timeline_(timeline),
        begin_(timeline.label({"begin_step", "step", {}})),
        end_(timeline.label({"end_step", "step", {}})) {
    for (const VariableSpec& variable : variables) {
      const auto label = [&](const std::string& call) {
        return timeline.label({call + " " + variable.name,
                               call,
                               {{"variable", variable.name}, {"shape", variable.shape.str()}}});
      };
      calls_.push_back(
          {label("need"), label("place"), label("ready"),
           variable.sparse ? kUnknown : std::int64_t(byte_count(variable.dtype, variable.shape))});
    }
  }

  NormBy norm_by() const override { return steps_->norm_by(); }
  MemorySpace space() const override { return steps_->space(); }
  void count_waits(StepAccount& account) override { steps_->count_waits(account); }
  bool wants_next_rows() const override { return steps_->wants_next_rows(); }
  void begin_step(StepKind kind, std::span<const RowSet> rows,
                  const StepScalars& scalars) override {
    const TimelineScope scope(&timeline_, begin_);
    steps_->begin_step(kind, rows, scalars);
  }
  SumExchange* exchange() override { return steps_->exchange(); }
  AsyncView need(VariableId variable) override {
    const TimelineScope scope(&timeline_, of(variable).need, of(variable).bytes);
    return steps_->need(variable);
  }
  AsyncView place(VariableId variable) override {
    const TimelineScope scope(&timeline_, of(variable).place, of(variable).bytes);
    return steps_->place(variable);
  }
  OutputSink& sink(VariableId variable) override {
    const TimelineScope scope(&timeline_, of(variable).place, of(variable).bytes);
    return steps_->sink(variable);
  }
  void ready(VariableId variable, const Contribution& contribution, const Event& event) override {
    const TimelineScope scope(&timeline_, of(variable).ready, of(variable).bytes);
    steps_->ready(variable, contribution, event);
  }
  StepHandle& end_step(float clip_scale, std::span<const RowSet> next_rows) override {
    const TimelineScope scope(&timeline_, end_);
    return steps_->end_step(clip_scale, next_rows);
  }

 private:
  struct Calls {
    const TimelineLabel *need, *place, *ready;
    std::int64_t bytes;
  };
  const Calls& of(VariableId variable) const { return calls_.at(std::size_t(variable)); }

  const std::unique_ptr<StoreSteps> steps_;
  Timeline& timeline_;
  const TimelineLabel *const begin_, *const end_;
  std::vector<Calls> calls_;  // by variable
};

}  // namespace

std::unique_ptr<StoreSteps> make_traced_steps(std::unique_ptr<StoreSteps> steps,
                                              std::span<const VariableSpec> variables,
                                              Timeline& timeline) {
  return std::make_unique<TracedSteps>(std::move(steps), variables, timeline);
}

}  // namespace paceline
