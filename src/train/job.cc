#include "train/job.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "cluster/interrupt.h"
#include "cluster/log.h"
#include "paceline/error.h"
#include "params/local/local_store.h"

namespace paceline {
namespace {

// What a quiet worker waits for is worth a line only when the user would wonder.
constexpr Duration kQuietWait = std::chrono::seconds(5);

Duration from_seconds(double seconds) { return Duration(std::int64_t(seconds * 1e9)); }

}  // namespace

Job::Job(const Options& options, std::vector<VariableSpec> variables)
    : cluster_(options.cluster),
      interrupt_(options.run.interrupt),
      log_(options.run.log),
      quiet_(options.run.quiet) {
  if (cluster_.task.job == TaskId::Job::kPs) {
    throw Error(ErrorCode::kUsage, cluster_.task.str() +
                                       " serves, it does not train: a session is "
                                       "for workers");
  }
  if (cluster_.distributed()) {
    join(options, std::move(variables));
  } else {
    store_ =
        make_local_store(std::move(variables), options.pool, options.account, options.timeline);
  }
}

void Job::join(const Options& options, std::vector<VariableSpec> variables) {
  PsStoreOptions server;
  server.spec = cluster_.spec;
  server.task = cluster_.task;
  server.cluster_id = cluster_.cluster_id;
  server.link = cluster_.link;
  server.join_timeout = from_seconds(cluster_.join_timeout_s);
  server.spin = cluster_.spin;
  server.torn_free = cluster_.torn_free;
  server.wire = cluster_.wire;
  server.error_feedback = cluster_.error_feedback;
  server.last_step = options.run.steps.value_or(0);
  server.timeline = options.timeline;
  server.say = [this](const std::string& line) { say(line); };
  if (log_ != nullptr) {
    log_->debug(fmt::format("cluster {}, cluster id {}, link {}", cluster_.spec.str(),
                            cluster_.cluster_id, cluster_.link));
  }
  if (options.run.quiet) server.say_after = kQuietWait;
  if (cluster_.existing_servers && !cluster_.launched) {
    say(fmt::format("uses existing servers, which stay: {}", fmt::join(cluster_.spec.ps, ", ")));
  }
  server.check_interrupt = [this] { check_interrupt(); };
  std::unique_ptr<PsStore> joined = PsStore::join(server, std::move(variables));
  server_ = joined.get();
  store_ = std::move(joined);
  if (cluster_.wire != DType::kFloat32 && cluster_.is_chief() && !server_->rounds()) {
    say("--wire bfloat16 rounds nothing: all parameter servers share this worker's memory, and no "
        "values travel (--link tcp sends them)");
  }
  if (!cluster_.show_placement) return;
  fmt::print("{}", server_->placement_text());
  std::fflush(stdout);
}

// Who wants no lines wants those that tell of a trouble.
void Job::say(const std::string& line) const {
  if (log_ != nullptr) return log_->write(quiet_ ? LogLevel::kWarning : LogLevel::kInfo, line);
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

Job::~Job() {
  if (!failed_) leave();
}

void Job::leave() {
  if (server_ == nullptr || std::exchange(left_, true)) return;
  try {
    server_->set_done();
    server_->goodbye();
  } catch (const std::exception& error) {
    if (log_ != nullptr) log_->warning(fmt::format("could not say goodbye: {}", error.what()));
  }
}

void Job::initialise(const std::function<InitialState()>& make) {
  if (!cluster_.is_chief() || (server_ != nullptr && server_->was_initialised())) {
    server_->wait_initialised();
  } else {
    InitialState beginning = make();
    if (server_ != nullptr) server_->restore(beginning.tasks);
    store_->write(std::move(beginning.values), beginning.global_step);
    if (!beginning.tasks.empty()) restored_ = std::move(beginning.tasks.front());
  }
  if (server_ != nullptr && !restored_) restored_ = server_->restored();
  first_step_ = server_ != nullptr ? server_->next_step() : restored_ ? restored_->step : 0;
}

bool Job::wait_all_done(Deadline deadline) {
  if (server_ == nullptr) return true;
  server_->set_done();
  return server_->wait_all_done(deadline);
}

bool Job::interrupted() const {
  return (interrupt_ != nullptr && interrupt_->interrupted()) ||
         (server_ != nullptr && server_->stop_asked());
}

void Job::check_interrupt() const {
  if (interrupted()) {
    throw Error(ErrorCode::kCancelled, cluster_.task.str() + " was interrupted");
  }
}

}  // namespace paceline
