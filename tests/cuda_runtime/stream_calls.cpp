// The calls of CUDA's runtime about streams and events.
#include <mutex>

#include <cuda_runtime_api.h>

#include "tests/cuda_runtime/state.h"
#include "tests/cuda_runtime/streams.h"

namespace everstep::null_cuda {
namespace {

// What handles point to. Streams stay for ever: places in them may be asked for at any time.
StreamWork& work_of(cudaStream_t stream) {
  if (stream != nullptr) return *reinterpret_cast<StreamWork*>(stream);
  return timeline().default_streams.at(static_cast<std::size_t>(here().gpu));
}

StreamWork::Place& place_of(cudaEvent_t event) { return *reinterpret_cast<StreamWork::Place*>(event); }

cudaError_t make_stream(cudaStream_t* stream) {
  auto* const work = new StreamWork;
  const std::lock_guard lock(timeline().mutex);
  timeline().streams.push_back(work);
  *stream = reinterpret_cast<cudaStream_t>(work);
  return cudaSuccess;
}

cudaError_t make_event(cudaEvent_t* event) {
  *event = reinterpret_cast<cudaEvent_t>(new StreamWork::Place);
  return cudaSuccess;
}

cudaError_t is_over(const StreamWork::Place& place) {
  return timeline().pace == Pace::kAtOnce || place.is_over() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t record(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(timeline().mutex);
  place_of(event) = work_of(stream).here();
  return cudaSuccess;
}

}  // namespace

void give_work(cudaStream_t stream) {
  const std::lock_guard lock(timeline().mutex);
  work_of(stream).add();
}

void end_work(cudaStream_t stream) {
  const std::lock_guard lock(timeline().mutex);
  work_of(stream).here().end();
}

void end_all_work() {
  const std::lock_guard lock(timeline().mutex);
  for (StreamWork& work : timeline().default_streams) work.here().end();
  for (StreamWork* work : timeline().streams) work->here().end();
}

}  // namespace everstep::null_cuda

using namespace everstep::null_cuda;  // NOLINT(google-build-using-namespace): what follows has no namespace

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned /*flags*/, int /*priority*/) {
  return make_stream(stream);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) { return make_stream(stream); }
cudaError_t cudaStreamDestroy(cudaStream_t /*stream*/) { return cudaSuccess; }

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  count_wait("cudaStreamSynchronize");
  end_work(stream);
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  count_wait("cudaDeviceSynchronize");
  end_all_work();
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const std::lock_guard lock(timeline().mutex);
  return is_over(work_of(stream).here());
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  const std::lock_guard lock(timeline().mutex);
  work_of(stream).wait_for(place_of(event));
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t /*stream*/, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* /*mode*/) { return cudaSuccess; }

cudaError_t cudaEventCreate(cudaEvent_t* event) { return make_event(event); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) { return make_event(event); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &place_of(event);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) { return record(event, stream); }
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned /*flags*/) {
  return record(event, stream);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::lock_guard lock(timeline().mutex);
  return is_over(place_of(event));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  count_wait("cudaEventSynchronize");
  const std::lock_guard lock(timeline().mutex);
  place_of(event).end();
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t /*start*/, cudaEvent_t /*end*/) {
  *milliseconds = 1;
  return cudaSuccess;
}

}  // extern "C"
