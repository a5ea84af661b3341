// The shared variables of a session, by name: SharedVariables of paceline/session.h.
#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/torch_names.h"
#include "paceline/error.h"
#include "paceline/session.h"
#include "train/feed.h"
#include "train/saved_values.h"
#include "train/session_impl.h"

namespace paceline {

std::vector<std::string> SharedVariables::names() const {
  std::vector<std::string> names;
  for (const VariableSpec& spec : session_->impl_->variables()) names.push_back(spec.name);
  return names;
}

Tensor SharedVariables::get(std::string_view name) const {
  Session::Impl& session = *session_->impl_;
  return session.guarded([&] {
    const VariableId id = session.variable_of(name);
    if (session.started()) return session.job->store().read({&id, 1}).front().value;
    const VariableSpec spec = session.variables()[std::size_t(id)];
    return Tensor(spec.dtype, spec.shape);
  });
}

void SharedVariables::set(std::string_view name, const Tensor& value) {
  Session::Impl& session = *session_->impl_;
  session.guarded([&] {
    const VariableId id = session.variable_of(name);
    session.change_variables({&id, 1}, [&](std::vector<VariableState>& states) {
      const Tensor& old = states[0].value;
      if (!value.defined() || value.dtype() != old.dtype() || value.shape() != old.shape()) {
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("[session] variable '{}' is {}, the tensor is {}", name,
                                type_text(old), type_text(value)));
      }
      states[0].value = value.clone();
    });
  });
}

void SharedVariables::save(const std::string& path) const {
  Session::Impl& session = *session_->impl_;
  if (!session.started()) return;
  session.guarded([&] {
    std::vector<TensorInfo> variables;
    for (const VariableSpec& spec : session.variables()) {
      variables.push_back({spec.name, spec.dtype, spec.shape});
    }
    write_torch_file(path, torch_tensors(variables, session.options.modules),
                     [this](const std::string& name) { return get(name); });
  });
}

void SharedVariables::load(const std::string& checkpoint) {
  Session::Impl& session = *session_->impl_;
  // A session that was not started, as in a dry run, has no values to replace. Its save() has
  // written no file, so the file to load may not exist.
  if (!session.started()) return;
  session.guarded([&] {
    const CheckpointReader reader(find_checkpoint(checkpoint, WholeCheck::kChecksums).path);
    const std::vector<VariableSpec> specs = session.variables();
    std::vector<VariableId> all(specs.size());
    std::iota(all.begin(), all.end(), VariableId(0));
    session.change_variables(all, [&](std::vector<VariableState>& states) {
      const std::vector<std::string> lines =
          take_values(states, specs, reader, {.modules = session.options.modules});
      if (!lines.empty()) refuse_other_model(reader.path(), lines);
    });
  });
}

}  // namespace paceline
