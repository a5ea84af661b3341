#include "paceline/evaluator.h"

#include <fmt/format.h>

#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include "base/cores.h"
#include "paceline/error.h"
#include "train/session_impl.h"
#include "train/worker_device.h"

namespace paceline {
namespace {

DeviceOptions device_with(const Cluster& cluster, int threads) {
  if (threads < 0) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("[evaluator] {} threads: must be 0, for one on each core, or more", threads));
  }
  DeviceOptions options = worker_device(cluster);
  options.threads = threads > 0 ? threads : usable_cores();
  return options;
}

}  // namespace

struct Evaluator::Impl {
  Impl(Session::Impl& for_session, std::unique_ptr<Device> on)
      : session(for_session), device(std::move(on)) {
    if (!session.started()) return;
    context.emplace(DeviceContext::Parts{.store = session.job->store(),
                                         .device = *device,
                                         .step_account = account,
                                         .evaluation_account = account,
                                         .rewrite = session.rewrite,
                                         .normals = session.normals,
                                         .seed = session.run_options.seed,
                                         .task = session.cluster.task.index,
                                         .examples = session.examples});
  }

  /// Marks the evaluator as used as long as this object lives. Throws kFailedPrecondition if it is
  /// marked already.
  class Use {
   public:
    Use(std::atomic<bool>& used, const char* what) : used_(used) {
      if (!used.exchange(true)) return;
      throw Error(ErrorCode::kFailedPrecondition,
                  fmt::format("[evaluator] {} while an evaluation is under way", what));
    }
    ~Use() { used_ = false; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    std::atomic<bool>& used_;
  };

  Session::Impl& session;
  std::unique_ptr<Device> device;
  StepAccount account{session.clock};
  std::optional<DeviceContext> context;            // none: the session was not started
  std::shared_ptr<EvaluatedCheckpoint> evaluated;  // null: no checkpoint has its values
  UnstartedValues unstarted;
  std::atomic<bool> used = false, cancelled = false;
};

Evaluator::Evaluator(Session& session, int threads)
    : Evaluator(session,
                make_device(device_with(session.impl_->cluster, threads), session.impl_->clock)) {}

Evaluator::Evaluator(Session& session, std::unique_ptr<Device> device)
    : impl_(std::make_unique<Impl>(*session.impl_, std::move(device))) {}

Evaluator::~Evaluator() = default;

void Evaluator::take_values(EvaluateWith with) {
  const Impl::Use use(impl_->used, "take_values");
  if (!impl_->context) return;
  Session::Impl& session = impl_->session;
  session.guarded([&] {
    session.excluded([&] {
      impl_->evaluated = session.take_newest(impl_->context->snapshot(), with);
      report_now();
    });
  });
}

void Evaluator::take_values(const std::string& checkpoint, EvaluateWith with) {
  const Impl::Use use(impl_->used, "take_values");
  if (!impl_->context) return;
  Session::Impl& session = impl_->session;
  session.guarded([&] {
    session.excluded([&] {
      session.take_from(checkpoint, impl_->context->snapshot(), with);
      impl_->evaluated = std::make_shared<EvaluatedCheckpoint>();
      report_now();
    });
  });
}

void Evaluator::report_now() { impl_->session.evaluated = {impl_->evaluated}; }

std::int64_t Evaluator::global_step() const {
  return impl_->context ? impl_->context->snapshot().global_step() : 0;
}

std::span<const TensorView> Evaluator::evaluate_in_place(const Graph& graph,
                                                         std::span<const Value> fetches,
                                                         const std::function<void(Feed&)>& feed,
                                                         Mode mode) {
  const Impl::Use use(impl_->used, "evaluate");
  if (impl_->cancelled) throw Error(ErrorCode::kCancelled, "[evaluator] was cancelled");
  if (!impl_->context) return impl_->unstarted.of(graph, fetches);
  if (impl_->context->snapshot().empty() && !impl_->session.variables().empty()) {
    throw Error(ErrorCode::kFailedPrecondition,
                "[evaluator] has no values yet: call take_values first");
  }
  Session::Impl& session = impl_->session;
  if (std::this_thread::get_id() == session.thread) {
    session.guarded([&] { session.check_interrupt(); });
  }
  return impl_->context->read(StepKind::kEvaluate, graph, fetches, mode, false, feed);
}

std::vector<Tensor> Evaluator::evaluate(const Graph& graph, std::span<const Value> fetches,
                                        const std::function<void(Feed&)>& feed, Mode mode) {
  return copies_of(evaluate_in_place(graph, fetches, feed, mode));
}

Tensor Evaluator::evaluate(Value value, const std::function<void(Feed&)>& feed, Mode mode) {
  if (!value) throw Error(ErrorCode::kInvalidArgument, "[evaluator] what to evaluate is no value");
  return evaluate(value.graph(), {&value, 1}, feed, mode)[0];
}

void Evaluator::reset_locals(const Graph& graph) {
  const Impl::Use use(impl_->used, "reset_locals");
  if (impl_->context) impl_->context->plans().reset_locals(graph);
}

void Evaluator::cancel() { impl_->cancelled = true; }

}  // namespace paceline
