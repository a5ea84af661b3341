#include "params/towers/tower_threads.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "base/denormals.h"
#include "paceline/error.h"

namespace paceline {

TowerThreads::TowerThreads(int towers, const std::function<void(int)>& begin,
                           std::function<void(const std::exception_ptr&)> failed)
    : failed_(std::move(failed)) {
  try {
    for (int tower = 0; tower < towers; ++tower) {
      threads_.emplace_back([this, begin, tower] {
        const FlushDenormals flush;
        if (begin) begin(tower);
        serve(tower);
      });
    }
  } catch (const std::system_error& error) {
    end();
    throw Error(
        ErrorCode::kUnavailable,
        fmt::format("the threads of {} towers cannot be started: {}", towers, error.what()));
  }
}

TowerThreads::~TowerThreads() { end(); }

void TowerThreads::end() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void TowerThreads::run(TileFunction work, const std::function<void()>& meanwhile) {
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    running_ = int(threads_.size());
    ++calls_;
  }
  changed_.notify_all();
  std::exception_ptr other;
  try {
    if (meanwhile) meanwhile();
  } catch (...) {
    other = std::current_exception();
  }
  wait_for_all();
  if (other != nullptr) std::rethrow_exception(other);
}

void TowerThreads::wait_for_all() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return running_ == 0; });
  if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
}

void TowerThreads::serve(int tower) {
  for (std::int64_t served = 0;; ++served) {
    const TileFunction* work = nullptr;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ended_ || calls_ > served; });
      if (ended_) return;
      work = work_;
    }
    work_guarded(*work, tower);
    const std::lock_guard lock(mutex_);
    if (--running_ == 0) changed_.notify_all();
  }
}

void TowerThreads::work_guarded(TileFunction work, int tower) {
  try {
    work(tower);
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    {
      const std::lock_guard lock(mutex_);
      if (error_ == nullptr) error_ = error;
    }
    if (failed_) failed_(error);
  }
}

}  // namespace paceline
