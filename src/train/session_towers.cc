// Each tower has the same plan, on a device and a thread of its own. In a step, only the thread of
// tower 0 calls the session's store; between two steps, the session's thread does.
//
// Tower 0 computes a mean in one pass over the towers' contributions, and writes it straight into
// the place that the session's store gives. Tower 0 never waits for a device while it has kernels
// to queue, so it hands over the means of an accelerator's first gradients while the device
// computes the last ones. If a tower fails, the waits of all others end with its error.
//
// Meanwhile the session's thread fills the next batches of all towers by turns (TowerBatches). Each
// tower copies its own batch when the next step begins. Random numbers and Feed::step follow the
// number of the batch.
#include "train/session_towers.h"

#include <fmt/format.h>

#include "kernels/traced_device.h"
#include "train/worker_device.h"

namespace paceline {
namespace {

std::unique_ptr<Device> make_device_of(const SessionTowers::Parts& parts, int tower) {
  std::unique_ptr<Device> device = make_device(tower_device(parts.cluster, tower), parts.clock);
  if (parts.timeline == nullptr) return device;
  return make_traced_device(std::move(device), *parts.timeline);
}

}  // namespace

SessionTowers::Other::Other(const SessionTowers& towers, ParameterStore& store, int tower,
                            const DeviceContext::Parts& first)
    : device(make_device_of(towers.parts_, tower)),
      account(towers.parts_.clock),
      evaluation_account(towers.parts_.clock),
      context({.store = store,
               .device = *device,
               .step_account = account,
               .evaluation_account = evaluation_account,
               .rewrite = first.rewrite,
               .fused_update = first.fused_update,
               .timeline = first.timeline,
               .normals = first.normals,
               .seed = first.seed,
               .task = first.task,
               .examples = first.examples}) {}

SessionTowers::SessionTowers(const Parts& parts)
    : parts_(parts),
      store_(parts.store, parts.cluster.towers, &parts.pool, parts.cluster.train.sync_batch_norm),
      threads_(
          parts.cluster.towers,
          [timeline = parts.timeline](int tower) {
            if (timeline != nullptr) timeline->name_thread(fmt::format("tower {}", tower));
          },
          [this](const std::exception_ptr& error) { store_.fail(error); }) {}

void SessionTowers::make_contexts(const DeviceContext::Parts& first) {
  for (int tower = 1; tower < count(); ++tower) {
    others_.push_back(std::make_unique<Other>(*this, store_.of(tower), tower, first));
  }
}

}  // namespace paceline
