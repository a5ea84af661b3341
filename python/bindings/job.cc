#include "python/bindings/job.h"

#include <nanobind/nanobind.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <exception>

#include "paceline/error.h"

namespace nb = nanobind;

namespace paceline::python {
namespace {

constexpr double kLookAtSignals = 0.1;  // seconds between two checks for signals

constexpr const char* kAbout =
    "Trains a model that Python computes, alone or as a task of a job that `paceline launch`, "
    "torchrun, srun or another launcher has started.";

// Converts the program's error to the error that the job is told. kAborted (a ps was lost) becomes
// kUnavailable: the job would begin again, but the program does not. An exception of Python becomes
// an Error with its text, since it could be destroyed only with the GIL.
std::exception_ptr for_the_job(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const nb::python_error& raised) {
    const nb::gil_scoped_acquire acquired;
    const bool interrupted = raised.matches(PyExc_KeyboardInterrupt);
    return std::make_exception_ptr(
        Error(interrupted ? ErrorCode::kCancelled : ErrorCode::kInternal, raised.what()));
  } catch (const Error& failed) {
    if (failed.code() != ErrorCode::kAborted) return error;
    return std::make_exception_ptr(Error(ErrorCode::kUnavailable, failed.what()));
  } catch (...) {
    return error;
  }
}

}  // namespace

void check_signals() {
  const nb::gil_scoped_acquire acquired;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

Job::Job(const std::vector<std::string>& words) {
  thread_ = std::thread([this, words] {
    try {
      ProgramOptions options;
      options.about = kAbout;
      task_ = std::make_unique<ProgramTask>(words, options);
    } catch (...) {
      error_ = std::current_exception();
    }
    const std::scoped_lock lock(mutex_);
    begun_ = true;
    changed_.notify_all();
  });
  try {
    while (!has_begun(kLookAtSignals)) check_signals();
  } catch (...) {
    leave_signals_to_it();
    throw;
  }
  thread_.join();
  if (error_) std::rethrow_exception(error_);
}

Job::~Job() {
  if (task_ && trains())
    end(std::make_exception_ptr(
        Error(ErrorCode::kCancelled, "the program ended before its training did")));
}

bool Job::has_begun(double seconds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return begun_; });
}

// Makes a parameter server end: this thread blocks the signals and sends SIGINT, which the server's
// thread then takes. If the task has not begun to serve, its thread still waits for other
// processes; it is left to end with the process.
void Job::leave_signals_to_it() {
  sigset_t set, pending;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  kill(getpid(), SIGINT);
  bool serves = false;
  for (int looks = 0; looks < 5 && !serves; ++looks) {
    if (has_begun(kLookAtSignals)) break;
    sigpending(&pending);
    serves = sigismember(&pending, SIGINT) == 0;
  }
  while (serves && !has_begun(kLookAtSignals)) {
  }
  if (has_begun(0)) return thread_.join();
  thread_.detach();
  sigset_t taken;  // SIGINT is taken here, so that nobody sees it a second time
  sigemptyset(&taken);
  sigaddset(&taken, SIGINT);
  const timespec now = {};
  sigtimedwait(&taken, nullptr, &now);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void Job::end(const std::exception_ptr& error) { task_->end(error ? for_the_job(error) : nullptr); }

}  // namespace paceline::python
