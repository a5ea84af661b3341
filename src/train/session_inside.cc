#include "train/session_inside.h"

#include <fmt/format.h>

#include <numeric>

#include "paceline/error.h"
#include "train/session_impl.h"

namespace paceline {

void SessionInside::close() {
  impl_.close(session_);
  impl_.finish();
  impl_.leave();
}

const Graph& SessionInside::graph() const { return *impl_.graphs[0]; }

const SessionOptions& SessionInside::options() const { return impl_.options; }

const TaskPosition& SessionInside::restored() const { return impl_.restored; }

bool SessionInside::begin_save() {
  return impl_.started() && impl_.guarded([&] { return impl_.saving->begin(); });
}

std::int64_t SessionInside::examples() const {
  return impl_.loop != nullptr ? impl_.loop->examples_made() : 0;
}

std::vector<std::pair<std::string, double>> SessionInside::seconds_spent() const {
  if (!impl_.started()) return {};
  return impl_.meter->seconds_spent();
}

Staleness SessionInside::staleness() const {
  return impl_.started() ? impl_.job->store().staleness() : Staleness();
}

void SessionInside::print_progress(const std::string& line) {
  if (impl_.started()) impl_.console.print_progress(line);
}

void SessionInside::see_variables(
    const std::function<void(const std::string&, const Tensor&)>& see) {
  if (!impl_.started()) {
    for (const VariableSpec& spec : impl_.variables())
      see(spec.name, Tensor(spec.dtype, spec.shape));
    return;
  }
  impl_.guarded([&] {
    impl_.excluded([&] {
      const std::span<const VariableSpec> variables = impl_.job->store().variables();
      std::vector<VariableId> all(variables.size());
      std::iota(all.begin(), all.end(), 0);
      // The snapshot is left alone, since an evaluation may be under way on it.
      for (const VariableState& state : impl_.job->store().read(all)) {
        see(variables[std::size_t(state.variable)].name, state.value);
      }
    });
  });
}

std::shared_ptr<RecordBlocks> SessionInside::record_blocks() const {
  return impl_.started() ? impl_.job->control().records() : nullptr;
}

bool SessionInside::move_value(std::string_view name, const TensorView& to) {
  return impl_.guarded([&] {
    const VariableId id = impl_.variable_of(name);
    const VariableSpec spec = impl_.variables()[std::size_t(id)];
    if (to.dtype != spec.dtype || !(to.shape == spec.shape)) {
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format("[session] '{}' is {} {}, and cannot lie in {} {}", name, name_of(spec.dtype),
                      spec.shape.str(), name_of(to.dtype), to.shape.str()));
    }
    return impl_.started() &&
           impl_.job->store().move_value(id, {static_cast<std::byte*>(to.data), to.bytes()});
  });
}

}  // namespace paceline
