// libcuda.so.1 for tests: CUDA's driver on the host, as strict as a GPU is slow.
// - The host cannot touch a device's memory: it is opened only while the driver's own work runs.
//   New memory holds 0xa5, and the driver reports writes behind its end.
// - Work runs only when somebody waits for it: then the waited stream runs in order, and other
//   streams as far as its events require.
// - The target of a copy to the host is filled with ones (NaN) until the copy is made, and the
//   source of a copy to the device must not change until then.
// - A kernel (fake_nvrtc.cc) runs in the next schedule of the emulator, or always in that of
//   $FAKE_CUDA_SCHEDULE.
// As on a GPU, an error stays: all later calls return it.
//
// The environment configures the driver; defaults are in brackets. $FAKE_CUDA_DEVICES is the number
// of devices (1), $FAKE_CUDA_VERSION the CUDA version that the driver knows (13000),
// $FAKE_CUDA_INIT what cuInit returns, and $FAKE_CUDA_MEMORY the bytes of each device (1 GiB).
// Launch number $FAKE_CUDA_SKIPPED_LAUNCH does nothing. After $FAKE_CUDA_LAUNCHES launches, the
// last device fails. A copy of $FAKE_CUDA_LATE_COPIES bytes to the device is late: it brings the
// bytes of the copy before it to the same address (the first brings its own).
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/fakes/cuda_emulator.h"
#include "tests/fakes/fake_library.h"

namespace {

using paceline::testing::CudaEmulator;
using paceline::testing::Schedule;
using Address = std::uint64_t;

enum Status : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kUnknown = 999,
};

// Bytes after the end of a block, which nobody may write.
constexpr std::size_t kBehind = 64;
constexpr std::uint8_t kMark = 0x5a;
constexpr unsigned kNoTiming = 2;  // a flag of an event

struct Block {
  // The block's pages. Behind the block are kBehind bytes or a few more, and then a page that stays
  // closed.
  std::byte* mapped = nullptr;
  std::size_t mapped_bytes = 0, bytes = 0;
  int device = 0;
};

struct Stream {
  std::deque<std::function<void()>> work;
  std::uint64_t asked = 0, done = 0;
};

struct Event {
  Stream* stream = nullptr;
  std::uint64_t ticket = 0;
  bool timed = false;
  /// When it happened; empty before.
  std::shared_ptr<std::optional<std::chrono::steady_clock::time_point>> time = {};
};

struct Function {
  emulated::Kernel kernel;
};

struct Module {
  // Null for an image of a real GPU, whose kernels do nothing.
  void* library = nullptr;
  std::map<std::string, Function> functions;
};

struct Driver {
  std::recursive_mutex mutex;
  std::map<Address, Block> blocks;
  std::vector<Stream*> streams;
  std::vector<std::unique_ptr<Module>> modules;
  std::map<int, std::size_t> used;                 // bytes, by device
  std::map<void*, std::size_t> pinned;             // bytes of the host's memory
  std::map<Address, std::vector<std::byte>> late;  // what the next late copy to here brings
  CudaEmulator emulator;
  int device = 0, error = kSuccess, launches = 0, open = 0;
  std::string words;
};

// The driver lives until the process ends, since memory may be freed late.
Driver& driver() {
  static Driver* const driver = new Driver;
  return *driver;
}

long setting(const char* name, long otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atol(text);
}

int device_count() {
  const long all = setting("FAKE_CUDA_DEVICES", 1);
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return int(all);
  const std::string text = visible;
  return text.empty() || text[0] == '-' ? 0 : int(std::ranges::count(text, ',')) + 1;
}

int failed(Status status, const std::string& words) {
  if (driver().error == kSuccess) driver().words = words;
  driver().error = driver().error == kSuccess ? int(status) : driver().error;
  return driver().error;
}

Block* block_of(Address address, std::size_t bytes) {
  auto after = driver().blocks.upper_bound(address);
  if (after == driver().blocks.begin()) return nullptr;
  --after;
  return address + bytes <= after->first + after->second.bytes ? &after->second : nullptr;
}

void* pointer_to(Address address) { return std::bit_cast<void*>(address); }

bool is_device(const void* memory) { return block_of(Address(memory), 1) != nullptr; }

void protect_all(int how) {
  for (const auto& [address, block] : driver().blocks) {
    mprotect(block.mapped, block.mapped_bytes, how);
  }
}

void check_marks() {
  for (const auto& [address, block] : driver().blocks) {
    const auto* const behind = static_cast<const std::uint8_t*>(pointer_to(address + block.bytes));
    const auto* const end =
        reinterpret_cast<const std::uint8_t*>(block.mapped) + block.mapped_bytes;
    if (std::any_of(behind, end, [](std::uint8_t byte) { return byte != kMark; })) {
      failed(kIllegalAddress, "something was written behind the end of a block of memory");
    }
  }
}

void run_until(Stream& stream, std::uint64_t ticket) {
  Driver& d = driver();
  if (stream.done >= ticket) return;
  if (d.open++ == 0) protect_all(PROT_READ | PROT_WRITE);
  while (stream.done < ticket) {
    const std::function<void()> work = std::move(stream.work.front());
    stream.work.pop_front();
    ++stream.done;
    if (d.error != kSuccess) continue;
    try {
      work();
    } catch (const std::exception& error) {
      failed(kUnknown, error.what());
    }
  }
  if (d.open == 1) check_marks();
  if (--d.open == 0) protect_all(PROT_NONE);
}

int push(Stream* stream, std::function<void()> work) {
  if (stream == nullptr) return failed(kInvalidValue, "this driver has no default stream");
  if (driver().error != kSuccess) return driver().error;
  stream->work.push_back(std::move(work));
  ++stream->asked;
  return kSuccess;
}

std::uint64_t sum_of(const void* memory, std::size_t bytes) {
  std::uint64_t sum = bytes;
  std::size_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, static_cast<const std::byte*>(memory) + i, 8);
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
  }
  for (; i < bytes; ++i) sum = sum * 31 + static_cast<const std::uint8_t*>(memory)[i];
  return sum;
}

using Lock = std::lock_guard<std::recursive_mutex>;

}  // namespace

// Functions for tests, and for the fakes of libraries that compute on the device (fake_library.h).
namespace paceline::testing {

int push_on_fake_gpu(void* stream, std::function<void()> work) {
  const Lock lock(driver().mutex);
  return push(static_cast<Stream*>(stream), std::move(work));
}

std::size_t bytes_pinned_by_fake_gpu() {
  const Lock lock(driver().mutex);
  std::size_t bytes = 0;
  for (const auto& [memory, size] : driver().pinned) bytes += size;
  return bytes;
}

bool fake_gpu_holds(const void* begin, std::size_t bytes) {
  const Lock lock(driver().mutex);
  return block_of(Address(begin), bytes) != nullptr;
}

}  // namespace paceline::testing

extern "C" {

int cuInit(unsigned) {
  const int status = int(setting("FAKE_CUDA_INIT", kSuccess));
  return status == kSuccess && device_count() == 0 ? int(kNoDevice) : status;
}

int cuGetErrorString(int status, const char** text) {
  const Lock lock(driver().mutex);
  static thread_local std::string words;
  words = status == driver().error && !driver().words.empty() ? driver().words
          : status == kOutOfMemory                            ? "out of memory"
          : status == kNoDevice                               ? "no CUDA-capable device is detected"
                                : "fake error " + std::to_string(status);
  *text = words.c_str();
  return kSuccess;
}

int cuDriverGetVersion(int* version) {
  *version = int(setting("FAKE_CUDA_VERSION", 13000));
  return kSuccess;
}

int cuDeviceGetCount(int* count) {
  *count = device_count();
  return kSuccess;
}

int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && ordinal < device_count() ? kSuccess : kInvalidDevice;
}

int cuDeviceGetName(char* name, int bytes, int) {
  std::strncpy(name, "Fake GPU", std::size_t(bytes));
  return kSuccess;
}

int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = std::size_t(setting("FAKE_CUDA_MEMORY", 1L << 30));
  return kSuccess;
}

int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 16 ? 2 : 1;
  return kSuccess;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = pointer_to(Address(device) + 1);
  return kSuccess;
}
int cuDevicePrimaryCtxRelease_v2(int) { return kSuccess; }
int cuCtxSetCurrent(void* context) {
  const Lock lock(driver().mutex);
  driver().device = int(reinterpret_cast<std::intptr_t>(context)) - 1;
  return kSuccess;
}

int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  const Lock lock(driver().mutex);
  cuDeviceTotalMem_v2(total, 0);
  *free = *total - driver().used[driver().device];
  return kSuccess;
}

int cuMemAlloc_v2(Address* address, std::size_t bytes) {
  const Lock lock(driver().mutex);
  Driver& d = driver();
  if (d.error != kSuccess) return d.error;
  std::size_t free = 0, total = 0;
  cuMemGetInfo_v2(&free, &total);
  if (bytes == 0) return kInvalidValue;
  if (bytes > free) return kOutOfMemory;
  const std::size_t page = std::size_t(sysconf(_SC_PAGESIZE));
  const std::size_t rounded = (bytes + 63) / 64 * 64;
  const std::size_t mapped = (rounded + kBehind + page - 1) / page * page;
  // Maps one page more, which stays closed, so that an access behind the block's pages fails.
  void* const memory =
      mmap(nullptr, mapped + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return kOutOfMemory;
  mprotect(memory, mapped, PROT_READ | PROT_WRITE);
  auto* const begin = static_cast<std::byte*>(memory);
  std::byte* const data = begin + mapped - kBehind - rounded;
  std::memset(begin, 0xa5, std::size_t(data - begin) + bytes);
  std::memset(data + bytes, kMark, mapped - std::size_t(data - begin) - bytes);
  if (d.open == 0) mprotect(memory, mapped, PROT_NONE);
  *address = Address(data);
  d.blocks[*address] = {begin, mapped, bytes, d.device};
  d.used[d.device] += bytes;
  return kSuccess;
}

int cuMemFree_v2(Address address) {
  const Lock lock(driver().mutex);
  Driver& d = driver();
  const auto block = d.blocks.find(address);
  if (block == d.blocks.end()) return failed(kInvalidValue, "what is freed was not allocated");
  for (Stream* const stream : d.streams) run_until(*stream, stream->asked);  // as the real one does
  d.used[block->second.device] -= block->second.bytes;
  munmap(block->second.mapped, block->second.mapped_bytes + std::size_t(sysconf(_SC_PAGESIZE)));
  d.blocks.erase(block);
  return kSuccess;
}

int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  *memory = std::malloc(bytes);
  return *memory == nullptr ? kOutOfMemory : kSuccess;
}
int cuMemFreeHost(void* memory) {
  std::free(memory);
  return kSuccess;
}

// Records pinned memory. It is an error to pin memory twice, or to unpin memory that is not pinned.
int cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned) {
  const Lock lock(driver().mutex);
  if (!driver().pinned.emplace(memory, bytes).second) {
    return failed(kInvalidValue, "memory is pinned twice");
  }
  return kSuccess;
}
int cuMemHostUnregister(void* memory) {
  const Lock lock(driver().mutex);
  if (driver().pinned.erase(memory) == 0) {
    return failed(kInvalidValue, "memory is unpinned that was not pinned");
  }
  return kSuccess;
}

int cuMemsetD8Async(Address to, unsigned char byte, std::size_t bytes, Stream* stream) {
  const Lock lock(driver().mutex);
  if (block_of(to, bytes) == nullptr) return failed(kInvalidValue, "memset outside of a block");
  return push(stream, [=] { std::memset(pointer_to(to), byte, bytes); });
}

int cuMemcpyHtoDAsync_v2(Address to, const void* from, std::size_t bytes, Stream* stream) {
  const Lock lock(driver().mutex);
  const bool is_late = setting("FAKE_CUDA_LATE_COPIES", -1) == long(bytes);
  if (block_of(to, bytes) == nullptr || is_device(from)) {
    return failed(kInvalidValue, "a copy to the device is not from host to device");
  }
  return push(stream, [=, before = sum_of(from, bytes)] {
    if (sum_of(from, bytes) != before) {
      throw std::logic_error("the source of a copy to the device changed before it was made");
    }
    std::memcpy(pointer_to(to), from, bytes);
    if (!is_late) return;
    auto* const brought = static_cast<std::byte*>(pointer_to(to));
    std::vector<std::byte> now(brought, brought + bytes);
    const auto [before, is_first] = driver().late.emplace(to, now);
    if (!is_first) std::ranges::copy(std::exchange(before->second, now), brought);
  });
}

int cuMemcpyDtoHAsync_v2(void* to, Address from, std::size_t bytes, Stream* stream) {
  const Lock lock(driver().mutex);
  if (block_of(from, bytes) == nullptr || is_device(to)) {
    return failed(kInvalidValue, "a copy to the host is not from device to host");
  }
  std::memset(to, 0xff, bytes);
  return push(stream, [=] { std::memcpy(to, pointer_to(from), bytes); });
}

int cuMemcpyDtoDAsync_v2(Address to, Address from, std::size_t bytes, Stream* stream) {
  const Lock lock(driver().mutex);
  if (block_of(from, bytes) == nullptr || block_of(to, bytes) == nullptr) {
    return failed(kInvalidValue, "a copy on the device leaves a block");
  }
  return push(stream, [=] { std::memmove(pointer_to(to), pointer_to(from), bytes); });
}

int cuStreamCreate(Stream** stream, unsigned) {
  const Lock lock(driver().mutex);
  *stream = new Stream;
  driver().streams.push_back(*stream);
  return kSuccess;
}
int cuStreamSynchronize(Stream* stream) {
  const Lock lock(driver().mutex);
  run_until(*stream, stream->asked);
  return driver().error;
}
int cuStreamDestroy_v2(Stream* stream) {
  const int status = cuStreamSynchronize(stream);
  return status;  // events may still name it
}
int cuStreamWaitEvent(Stream* stream, Event* event, unsigned) {
  const Lock lock(driver().mutex);
  return push(stream, [stream = event->stream, ticket = event->ticket] {
    if (stream != nullptr) run_until(*stream, ticket);
  });
}

int cuEventCreate(Event** event, unsigned flags) {
  *event = new Event;
  (*event)->timed = (flags & kNoTiming) == 0;
  return kSuccess;
}
int cuEventDestroy_v2(Event* event) {
  delete event;
  return kSuccess;
}
int cuEventRecord(Event* event, Stream* stream) {
  const Lock lock(driver().mutex);
  if (event->timed) {
    event->time = std::make_shared<std::optional<std::chrono::steady_clock::time_point>>();
    push(stream, [time = event->time] { *time = std::chrono::steady_clock::now(); });
  }
  event->stream = stream;
  event->ticket = stream->asked;
  return driver().error;
}
int cuEventElapsedTime(float* ms, Event* begin, Event* end) {
  const Lock lock(driver().mutex);
  if (driver().error != kSuccess) return driver().error;
  if (begin->time == nullptr || end->time == nullptr) {
    return failed(kInvalidValue, "an event that does not time, or was not recorded, has no time");
  }
  if (!begin->time->has_value() || !end->time->has_value()) return kNotReady;
  *ms = std::chrono::duration<float, std::milli>(**end->time - **begin->time).count();
  return kSuccess;
}
int cuEventSynchronize(Event* event) {
  const Lock lock(driver().mutex);
  if (event->stream != nullptr) run_until(*event->stream, event->ticket);
  return driver().error;
}

int cuModuleLoadData(Module** module, const void* image) {
  const Lock lock(driver().mutex);
  constexpr char kElf[] =
      "\x7f"
      "ELF";
  *module = driver().modules.emplace_back(std::make_unique<Module>()).get();
  if (std::memcmp(image, kElf, 4) == 0) return kSuccess;
  void* const library = dlopen(static_cast<const char*>(image), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return kInvalidImage;  // this error does not stay
  (*module)->library = library;
  const auto give =
      reinterpret_cast<void (*)(const emulated::Calls*)>(dlsym(library, "paceline_emulated_calls"));
  if (give == nullptr) return kInvalidImage;
  give(CudaEmulator::calls());
  return kSuccess;
}
int cuModuleUnload(Module* module) {
  const Lock lock(driver().mutex);
  // The library stays loaded, since unfinished work may still use it.
  std::erase_if(driver().modules, [&](const auto& each) { return each.get() == module; });
  return kSuccess;
}
int cuModuleGetFunction(Function** function, Module* module, const char* name) {
  Function& found = module->functions[name];
  *function = &found;
  if (module->library == nullptr) return kSuccess;
  const auto kernel = reinterpret_cast<emulated::Kernel (*)()>(
      dlsym(module->library, ("paceline_kernel_" + std::string(name)).c_str()));
  if (kernel == nullptr) return kNotFound;
  found.kernel = kernel();
  return kSuccess;
}

int cuLaunchKernel(Function* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   Stream* stream, void** parameters, void**) {
  const Lock lock(driver().mutex);
  Driver& d = driver();
  if (grid_x * grid_y * grid_z == 0 || block_x * block_y * block_z == 0 ||
      block_x * block_y * block_z > 1024) {
    return failed(kInvalidValue, "a grid or block has no size that a GPU takes");
  }
  const emulated::Kernel kernel = function->kernel;
  const int launch = d.launches++;
  if (launch == setting("FAKE_CUDA_LAUNCHES", -1) && d.device == device_count() - 1) {
    return failed(kUnknown, "the GPU has fallen off the bus");
  }
  if (kernel.call == nullptr || launch == setting("FAKE_CUDA_SKIPPED_LAUNCH", -1)) {
    return push(stream, [] {});
  }
  std::vector<std::vector<std::byte>> values;  // copied now, as a driver does
  for (std::size_t i = 0; i < kernel.count; ++i) {
    const auto* const value = static_cast<const std::byte*>(parameters[i]);
    values.emplace_back(value, value + kernel.sizes[i]);
  }
  const auto schedule = Schedule(setting("FAKE_CUDA_SCHEDULE", launch % long(Schedule::kCount)));
  return push(stream, [=, values = std::move(values)]() mutable {
    std::vector<void*> pointers;
    for (auto& value : values) pointers.push_back(value.data());
    driver().emulator.run(kernel, pointers.data(), {grid_x, grid_y, grid_z},
                          {block_x, block_y, block_z}, shared_bytes, schedule);
  });
}

}  // extern "C"
