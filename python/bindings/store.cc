// The store in Python: an ExternalStore, and the job to which it belongs.
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "paceline/data.h"
#include "paceline/error.h"
#include "paceline/external_store.h"
#include "python/bindings/arrays.h"
#include "python/bindings/bindings.h"
#include "python/bindings/errors.h"
#include "python/bindings/job.h"
#include "run/program_run.h"
#include "train/session_inside.h"

namespace nb = nanobind;

namespace paceline::python {
namespace {

// A variable as Python code gives it.
struct GivenVariable {
  std::string name;
  nb::object value;
  std::int64_t most_rows = 0;
  bool frozen = false;
  std::optional<Rule> rule;
  float weight_decay = 0;
  double seconds_to_need = 0, seconds_to_ready = 0;
};

// Numbers: those of a position in the data, by name. Rows: the ids of the rows that a step reads,
// for each variable by name.
using Numbers = std::map<std::string, std::int64_t>;
using Rows = std::vector<std::pair<std::string, nb::object>>;

// Returns an owner that keeps the array until the store releases the owner, on any thread.
std::shared_ptr<const void> kept(HostArray array) {
  auto* const owner = new nb::ndarray<nb::ro>(std::move(array.owner));
  return {owner->data(), [owner](const void*) {
            const nb::gil_scoped_acquire acquired;
            delete owner;
          }};
}

class Store {
 public:
  Store(const std::vector<std::string>& words, const std::vector<GivenVariable>& given,
        const Rule& rule, const std::string& resume_command, ExternalStoreOptions options) {
    std::vector<ExternalVariable> variables;
    for (const GivenVariable& one : given) variables.push_back(external(one));
    const nb::gil_scoped_release released;
    job_ = std::make_unique<Job>(words);
    while (job_->trains()) {
      try {
        // If a signal ends the wait for other tasks, it also ends the session that is being made.
        auto ended = std::make_shared<std::atomic<bool>>(false);
        RunOptions run = job_->run();
        own_program_run(run).resume_command = resume_command;
        run.end_asked = [ended] { return ended->load(); };
        options.check_wait = [this, ended] {
          try {
            check_signals();
          } catch (...) {
            if (!made_) *ended = true;
            throw;
          }
        };
        store_ = std::make_unique<ExternalStore>(variables, rule, job_->cluster(), run, options);
        made_ = true;
        bool started = true;  // false in a dry run or a prediction, which starts nothing
        store_->with_session([&](Session& session) { started = session.started(); });
        if (started) return;
        store_.reset();
        job_->end({});
      } catch (...) {
        job_->end(std::current_exception());
        throw;
      }
    }
  }
  ~Store() {
    const nb::gil_scoped_release released;
    store_.reset();
    job_.reset();
  }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // False if this process is no worker, or if the run was only a dry run or a prediction. The
  // process must then end with status().
  bool trains() const { return store_ != nullptr; }
  int status() const { return job_->status(); }
  std::string strategy() const { return job_->cluster().strategy.name; }

  ExternalStore& store() {
    if (closed_ || !store_)
      throw Error(ErrorCode::kFailedPrecondition, "the store is closed, and takes no more calls");
    return *store_;
  }
  int index_of(const std::string& name) {
    try {
      return store().index_of(name);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotFound) throw;
      throw NoSuchName(error.code(), error.what());
    }
  }
  bool begin_step(const Rows& rows,
                  const std::optional<std::map<std::string, std::int64_t>>& position);
  TensorView need(const std::string& name);
  bool keep_in(const std::string& name, nb::handle memory);
  void ready(const std::string& name, nb::handle gradient);
  void ready_rows(const std::string& name, nb::handle ids, nb::handle rows);
  // Returns the records that the job shares out; null if it shares out none.
  std::shared_ptr<RecordBlocks> record_blocks();
  void close();
  // Abandons the step and ends this task's part in the job, since the program threw an exception.
  void fail(const std::string& why);

 private:
  static ExternalVariable external(const GivenVariable& given);

  std::unique_ptr<Job> job_;
  std::unique_ptr<ExternalStore> store_;
  bool made_ = false;
  bool closed_ = false;
};

// Copies the initial value, since the program may change its own array later.
ExternalVariable Store::external(const GivenVariable& given) {
  const std::string what = fmt::format("value of '{}'", given.name);
  const HostArray value = host_array(given.value, what);
  Tensor initial(value.view.dtype, value.view.shape);
  if (value.view.bytes() > 0) std::memcpy(initial.raw(), value.view.data, value.view.bytes());
  ExternalVariable made{
      .name = given.name, .initial = initial, .most_rows = given.most_rows, .frozen = given.frozen};
  if (given.rule || given.weight_decay != 0)
    made.own =
        VariableGroup{.prefix = given.name, .rule = given.rule, .weight_decay = given.weight_decay};
  made.seconds_to_need = given.seconds_to_need;
  made.seconds_to_ready = given.seconds_to_ready;
  return made;
}

std::vector<std::int32_t> ids_of(nb::handle ids, const std::string& name) {
  const std::string what = fmt::format("rows of '{}'", name);
  const HostArray array = host_array(ids, what);
  if (array.view.shape.rank() != 1 ||
      (array.view.dtype != DType::kInt32 && array.view.dtype != DType::kInt64))
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: the ids are {}, and must be int32 or int64 of rank 1", what,
                            text_of(array.view.dtype, array.view.shape)));
  std::vector<std::int32_t> read;
  const auto count = std::size_t(array.view.shape.elements());
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t id = array.view.dtype == DType::kInt32
                                ? std::int64_t{array.view.as<std::int32_t>()[i]}
                                : array.view.as<std::int64_t>()[i];
    if (id < 0 || id > INT32_MAX)
      throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: there is no row {}", what, id));
    read.push_back(std::int32_t(id));
  }
  return read;
}

bool Store::begin_step(const Rows& rows,
                       const std::optional<std::map<std::string, std::int64_t>>& position) {
  ExternalStep step;
  for (const auto& [name, ids] : rows) step.rows.push_back({index_of(name), ids_of(ids, name)});
  if (position) step.position = TaskPosition{.numbers = *position, .sums = {}};
  const nb::gil_scoped_release released;
  return store().begin_step(step);
}

TensorView Store::need(const std::string& name) {
  const int index = index_of(name);
  const nb::gil_scoped_release released;
  return store().need(index);
}

// `memory` must be a writable array that is contiguous in row-major order.
bool Store::keep_in(const std::string& name, nb::handle memory) {
  const int index = index_of(name);
  HostArray array = host_array(memory, fmt::format("memory of '{}'", name));
  const TensorView view = array.view;
  std::shared_ptr<const void> owner = kept(std::move(array));
  const nb::gil_scoped_release released;
  return store().keep_in(index, view, std::move(owner));
}

void Store::ready(const std::string& name, nb::handle gradient) {
  const int index = index_of(name);
  HostArray array = host_array(gradient, fmt::format("gradient of '{}'", name));
  const TensorView view = array.view;
  check_alike(view, store().variable(index).initial.dtype(),
              store().variable(index).initial.shape(), fmt::format("gradient of '{}'", name));
  std::shared_ptr<const void> owner = kept(std::move(array));
  const nb::gil_scoped_release released;
  store().ready(index, view, std::move(owner));
}

void Store::ready_rows(const std::string& name, nb::handle ids, nb::handle rows) {
  const int index = index_of(name);
  const std::vector<std::int32_t> numbers = ids_of(ids, name);
  HostArray array = host_array(rows, fmt::format("gradient of '{}'", name));
  const TensorView view = array.view;
  std::shared_ptr<const void> owner = kept(std::move(array));
  const nb::gil_scoped_release released;
  store().ready(index, numbers, view, std::move(owner));
}

std::shared_ptr<RecordBlocks> Store::record_blocks() {
  std::shared_ptr<RecordBlocks> blocks;
  store().with_session([&](Session& session) { blocks = SessionInside(session).record_blocks(); });
  return blocks;
}

// The records that a job shares out. A sampler takes the next records when it needs some.
class SharedRecords {
 public:
  SharedRecords(std::shared_ptr<RecordBlocks> blocks, std::int64_t block)
      : blocks_(std::move(blocks)), taker_({.records = block, .blocks = 1, .limit = kForEver}) {}

  // Returns begins(), and the first place and the end of the range that was taken, counted over all
  // epochs. The range is empty when there are no more records.
  std::tuple<int, std::int64_t, std::int64_t> take(std::int64_t most) {
    const nb::gil_scoped_release released;
    taker_.follow(blocks_);
    const RecordRange taken = taker_.take(most, check_signals);
    return {taker_.begins(), taken.first, taken.end};
  }
  std::int64_t use(std::int64_t records) { return taker_.use(records); }
  // Returns how often the taker has begun. When this number changes, records that were taken but
  // not used no longer belong to the caller.
  int begins() {
    const nb::gil_scoped_release released;
    taker_.follow(blocks_);
    return taker_.begins();
  }

 private:
  static constexpr std::int64_t kForEver = std::int64_t{1} << 62;

  const std::shared_ptr<RecordBlocks> blocks_;
  RecordTaker taker_;
};

void Store::close() {
  if (closed_ || !store_) return;
  const nb::gil_scoped_release released;
  closed_ = true;
  try {
    store_->close();
  } catch (...) {
    store_.reset();
    job_->end(std::current_exception());
    throw;
  }
  job_->end(nullptr);
}

void Store::fail(const std::string& why) {
  if (closed_ || !store_) return;
  const nb::gil_scoped_release released;
  closed_ = true;
  store_->abandon(why);
  try {
    store_->close();
  } catch (const std::exception&) {  // repeats the failure that `why` tells
  }
  job_->end(std::make_exception_ptr(Error(ErrorCode::kCancelled, why)));
}

template <typename F>
void with_session(Store& store, F use) {
  const nb::gil_scoped_release released;
  store.store().with_session(use);
}

void bind_parts(nb::module_& module) {
  nb::class_<SharedRecords>(module, "SharedRecords", "The records of _torch_sampler.py.")
      .def("take", &SharedRecords::take, nb::arg("most"))
      .def("use", &SharedRecords::use, nb::arg("records"))
      .def("begins", &SharedRecords::begins);
  nb::class_<StepResult>(module, "StepResult", "The numbers of a step.")
      .def_ro("step", &StepResult::step, "This worker's steps so far, this one included.")
      .def_ro("global_step", &StepResult::global_step, "Those of all workers.")
      .def_ro("loss", &StepResult::loss, "The loss of this step.")
      .def_ro("seconds", &StepResult::seconds, "The wall time of this step, its input included.")
      .def_ro("learning_rate", &StepResult::learning_rate,
              "The learning rate of the first variable that is trained.")
      .def_prop_ro(
          "global_norm", [](const StepResult& of) { return of.global_norm; },
          "The norm of the gradient before clipping; None where nothing clips.")
      .def_ro(
          "skipped", &StepResult::skipped,
          "True when nothing of it was applied, since it had NaN or infinity (on_nan=\"skip\").")
      .def("__repr__", [](const StepResult& of) {
        return fmt::format("StepResult(step={}, global_step={}, loss={:.6g}, seconds={:.4g})",
                           of.step, of.global_step, of.loss, of.seconds);
      });
  nb::class_<GivenVariable>(module, "GivenVariable", "A variable as a store is given it.")
      .def(
          "__init__",
          [](GivenVariable* self, const std::string& name, nb::object value, std::int64_t most_rows,
             bool frozen, std::optional<Rule> rule, float weight_decay, double seconds_to_need,
             double seconds_to_ready) {
            new (self) GivenVariable{
                name,         std::move(value), most_rows,       frozen, std::move(rule),
                weight_decay, seconds_to_need,  seconds_to_ready};
          },
          nb::arg("name"), nb::arg("value"), nb::arg("most_rows") = 0, nb::arg("frozen") = false,
          nb::arg("rule") = nb::none(), nb::arg("weight_decay") = 0.0f,
          nb::arg("seconds_to_need") = 0.0, nb::arg("seconds_to_ready") = 0.0);
}

void bind_init(nb::class_<Store>& store) {
  store.def(
      "__init__",
      [](Store* self, const std::vector<std::string>& words,
         const std::vector<const GivenVariable*>& given, const Rule& rule, float clip_norm,
         float clip_value, float average_decay, const std::string& model,
         std::int64_t examples_per_step, const std::string& unit, bool nan_guard,
         const std::string& resume_command, const std::map<std::string, std::string>& agreed,
         std::int64_t shared_records) {
        std::vector<GivenVariable> variables;
        for (const GivenVariable* one : given) variables.push_back(*one);
        ExternalStoreOptions options;
        options.minimize.clip_norm = clip_norm;
        options.minimize.clip_value = clip_value;
        options.minimize.average_decay = average_decay;
        options.session.model = model;
        options.session.examples_per_step = examples_per_step;
        options.session.unit = unit;
        options.session.nan_guard = nan_guard;
        options.session.agreed = agreed;
        options.session.shared_records = shared_records;
        new (self) Store(words, variables, rule, resume_command, options);
      },
      nb::arg("words"), nb::arg("variables"), nb::arg("rule"), nb::kw_only(),
      nb::arg("clip_norm") = 0.0f, nb::arg("clip_value") = 0.0f, nb::arg("average_decay") = 0.0f,
      nb::arg("model") = "model", nb::arg("examples_per_step") = 0, nb::arg("unit") = "examples",
      nb::arg("nan_guard") = true, nb::arg("resume_command") = "",
      nb::arg("agreed") = std::map<std::string, std::string>(), nb::arg("shared_records") = 0);
}

void bind_steps(nb::class_<Store>& store) {
  store.def_prop_ro("trains", &Store::trains)
      .def_prop_ro("status", &Store::status)
      .def_prop_ro("strategy", &Store::strategy)
      .def("begin_step", &Store::begin_step, nb::arg("rows"), nb::arg("position").none())
      .def(
          "need",
          [](nb::handle self, const std::string& name) {
            return numpy_array(nb::cast<Store&>(self).need(name), self, true);
          },
          nb::arg("name"), nb::sig("def need(self, name: str) -> numpy.ndarray"))
      .def(
          "need_dlpack",
          [](nb::handle self, const std::string& name) {
            return dlpack_array(nb::cast<Store&>(self).need(name), self);
          },
          nb::arg("name"), nb::sig("def need_dlpack(self, name: str) -> typing.Any"))
      .def("keep_in", &Store::keep_in, nb::arg("name"), nb::arg("memory"))
      .def("ready", &Store::ready, nb::arg("name"), nb::arg("gradient").none())
      .def("ready_rows", &Store::ready_rows, nb::arg("name"), nb::arg("ids").none(),
           nb::arg("rows").none())
      .def(
          "end_step",
          [](Store& self, std::optional<double> loss) {
            const nb::gil_scoped_release released;
            return self.store().end_step(loss);
          },
          nb::arg("loss").none())
      .def_prop_ro("predicted",
                   [](Store& self) { return self.trains() && self.store().predicted(); })
      .def("in_step", [](Store& self) { return self.trains() && self.store().in_step(); })
      .def("interrupt", [](Store& self) { self.store().interrupt(); })
      .def(
          "set_learning_rate_factor",
          [](Store& self, const std::string& name, double factor) {
            self.store().set_learning_rate_factor(self.index_of(name), factor);
          },
          nb::arg("name"), nb::arg("factor"));
}

void bind_values(nb::class_<Store>& store) {
  store
      .def(
          "read",
          [](Store& self, const std::string& name) {
            const int index = self.index_of(name);
            Tensor value;
            {
              const nb::gil_scoped_release released;
              value = self.store().read(index);
            }
            return numpy_array(value.view(), owner_of(value), false);
          },
          nb::arg("name"), nb::sig("def read(self, name: str) -> numpy.ndarray"))
      .def(
          "shared_records",
          [](Store& self, std::int64_t block) -> std::unique_ptr<SharedRecords> {
            const nb::gil_scoped_release released;
            auto blocks = self.record_blocks();
            return blocks ? std::make_unique<SharedRecords>(std::move(blocks), block) : nullptr;
          },
          nb::arg("block"),
          nb::sig("def shared_records(self, block: int) -> SharedRecords | None"));
}

void bind_session(nb::class_<Store>& store) {
  store
      .def("save",
           [](Store& self) { with_session(self, [](Session& session) { session.save(); }); })
      .def("stop_all",
           [](Store& self) { with_session(self, [](Session& session) { session.stop_all(); }); })
      .def("ended",
           [](Store& self) {
             bool ended = false;
             with_session(self, [&](Session& session) { ended = session.ended(); });
             return ended;
           })
      .def("restored",
           [](Store& self) {
             Numbers numbers;
             with_session(self, [&](Session& session) {
               numbers = SessionInside(session).restored().numbers;
             });
             return numbers;
           })
      .def("place",
           [](Store& self) {
             int index = 0, workers = 0;
             std::int64_t step = 0, global_step = 0;
             with_session(self, [&](Session& session) {
               index = session.cluster().task.index;
               workers = session.cluster().workers();
               step = session.last_step().step;
               global_step = session.last_step().global_step;
             });
             return std::tuple(index, workers, step, global_step);
           })
      .def(
          "print",
          [](Store& self, const std::string& line) {
            with_session(self, [&](Session& session) { session.print(line); });
          },
          nb::arg("line"))
      .def(
          "report",
          [](Store& self, const std::string& section, const std::string& key,
             std::optional<double> value) {
            with_session(self, [&](Session& session) { session.report(section, key, value); });
          },
          nb::arg("section"), nb::arg("key"), nb::arg("value").none())
      .def(
          "summarise",
          [](Store& self, const std::string& tag, double value) {
            with_session(self, [&](Session& session) { session.summarise(tag, value); });
          },
          nb::arg("tag"), nb::arg("value"));
}

}  // namespace

void bind_store(nb::module_& module) {
  bind_parts(module);
  nb::class_<Store> store(module, "StoreBinding", "The store of _store.py.");
  bind_init(store);
  bind_steps(store);
  bind_values(store);
  bind_session(store);
  store.def("close", &Store::close).def("fail", &Store::fail, nb::arg("why"));
}

}  // namespace paceline::python
