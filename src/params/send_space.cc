#include "params/send_space.h"

namespace paceline {

void SendSpace::use_own_memory(DType dtype, const Shape& shape) {
  const auto tensor = std::make_shared<Tensor>(dtype, shape);
  values = tensor->view();
  owner_ = tensor;
  shared.reset();
}

void SendSpace::use(const std::shared_ptr<SharedMemory>& memory, Place place, DType dtype,
                    const Shape& shape) {
  values = {memory->bytes().data() + place.offset, dtype, shape};
  owner_ = memory;
  shared = place;
}

void SendSpace::sent(void* context) {
  SendSpace& space = *static_cast<SendSpace*>(context);
  if (--space.in_flight == 0) space.wakeup->notify();
}

}  // namespace paceline
