// libpaceline_mpi.so: the calls of params/collective/mpi_calls.h over MPI.
#include <mpi.h>

#include <memory>
#include <vector>

#include "params/collective/mpi_calls.h"

namespace paceline {
namespace {

struct Group {
  MPI_Comm communicator = MPI_COMM_NULL;
  int rank = 0;
};

struct Request {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Datatype element = MPI_DATATYPE_NULL;  // freed with the request
};

MPI_Comm communicator_of(void* group) { return static_cast<Group*>(group)->communicator; }

const char* text_of(int status) {
  if (status == MPI_SUCCESS) return nullptr;
  static thread_local char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(status, text, &length);
  return text;
}

/// Calls begin(request), and passes the request to the caller if that has succeeded.
template <typename Begin>
const char* begin_request(void** out, Request made, Begin&& begin) {
  auto request = std::make_unique<Request>(made);
  const char* const failure = text_of(begin(*request));
  if (failure == nullptr) *out = request.release();
  return failure;
}

bool started() {
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

const char* start() {
  int provided = 0;
  if (const char* failure =
          text_of(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided))) {
    return failure;
  }
  if (provided < MPI_THREAD_SERIALIZED) return "this MPI serves one thread only";
  return text_of(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
}

const char* end() { return text_of(MPI_Finalize()); }

int rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

const char* exchange(const void* own, int bytes, void* all) {
  return text_of(MPI_Allgather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, MPI_COMM_WORLD));
}

const char* make_group(const int* ranks, int count, void** group) {
  MPI_Group world = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
  int status = MPI_Comm_group(MPI_COMM_WORLD, &world);
  if (status == MPI_SUCCESS) status = MPI_Group_incl(world, count, ranks, &members);
  auto made = std::make_unique<Group>();
  if (status == MPI_SUCCESS) {
    status = MPI_Comm_create_group(MPI_COMM_WORLD, members, 0, &made->communicator);
  }
  if (world != MPI_GROUP_NULL) MPI_Group_free(&world);
  if (members != MPI_GROUP_NULL) MPI_Group_free(&members);
  if (const char* failure = text_of(status)) return failure;
  if (made->communicator == MPI_COMM_NULL) return "this process is no member of the group";
  MPI_Comm_set_errhandler(made->communicator, MPI_ERRORS_RETURN);
  MPI_Comm_rank(made->communicator, &made->rank);
  *group = made.release();
  return nullptr;
}

void free_group(void* group) {
  const std::unique_ptr<Group> owned(static_cast<Group*>(group));
  MPI_Comm_free(&owned->communicator);
}

const char* begin_meet(void* group, void** request) {
  return begin_request(request, {}, [&](Request& made) {
    return MPI_Ibarrier(communicator_of(group), &made.request);
  });
}

const char* begin_sum(void* group, float* numbers, int count, void** request) {
  return begin_request(request, {}, [&](Request& made) {
    return MPI_Iallreduce(MPI_IN_PLACE, numbers, count, MPI_FLOAT, MPI_SUM, communicator_of(group),
                          &made.request);
  });
}

const char* begin_gather(void* group, const void* own, void* all, const int* counts,
                         const int* begins, int element_bytes, void** request) {
  Request gathering;
  int status = MPI_Type_contiguous(element_bytes, MPI_BYTE, &gathering.element);
  if (status == MPI_SUCCESS) status = MPI_Type_commit(&gathering.element);
  if (const char* failure = text_of(status)) return failure;
  return begin_request(request, gathering, [&](Request& made) {
    return MPI_Iallgatherv(own, counts[static_cast<Group*>(group)->rank], made.element, all, counts,
                           begins, made.element, communicator_of(group), &made.request);
  });
}

const char* test(void* request, bool* done) {
  auto* const pending = static_cast<Request*>(request);
  int ended = 0;
  const int status = MPI_Test(&pending->request, &ended, MPI_STATUS_IGNORE);
  *done = ended != 0;
  if (status == MPI_SUCCESS && ended == 0) return nullptr;
  if (pending->element != MPI_DATATYPE_NULL) MPI_Type_free(&pending->element);
  delete pending;
  return text_of(status);
}

constexpr MpiCalls kCalls = {started,    start,      end,        rank,      size,         exchange,
                             make_group, free_group, begin_meet, begin_sum, begin_gather, test};

}  // namespace
}  // namespace paceline

extern "C" __attribute__((visibility("default"))) const paceline::MpiCalls* paceline_mpi_calls() {
  return &paceline::kCalls;
}
