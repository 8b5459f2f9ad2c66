// The calls of cuBLAS that would need a GPU; NVIDIA's own library answers the others, such as those that describe
// matrices. A product counts as one launch, and its matrices must lie on the thread's GPU.
#include <initializer_list>

#include <cublasLt.h>
#include <cublas_v2.h>

#include "tests/cuda_runtime/state.h"
#include "tests/cuda_runtime/streams.h"

namespace everstep::null_cuda {
namespace {

struct Handle {
  cudaStream_t stream = nullptr;
};

Handle& handle_of(cublasHandle_t handle) { return *reinterpret_cast<Handle*>(handle); }

bool on_this_gpu(const void* address) {
  const AddressBook::Entry entry = addresses().at(address);
  return entry.where == Where::kGpu && entry.gpu == here().gpu;
}

cublasStatus_t multiply(const void* function, const char* name, cudaStream_t stream,
                        std::initializer_list<const void*> matrices) {
  for (const void* matrix : matrices) {
    if (!on_this_gpu(matrix)) return CUBLAS_STATUS_INVALID_VALUE;
  }
  name_function(function, name);
  count_launch(function);
  give_work(stream);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace
}  // namespace everstep::null_cuda

using namespace everstep::null_cuda;  // NOLINT(google-build-using-namespace): what follows has no namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = reinterpret_cast<cublasHandle_t>(new Handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete &handle_of(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle_of(handle).stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t /*handle*/, void* workspace, std::size_t bytes) {
  return bytes == 0 || on_this_gpu(workspace) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t /*handle*/, cublasMath_t /*mode*/) { return CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasGetMathMode(cublasHandle_t /*handle*/, cublasMath_t* mode) {
  *mode = CUBLAS_DEFAULT_MATH;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t /*handle*/, cublasPointerMode_t /*mode*/) {
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t /*handle*/, cublasPointerMode_t* mode) {
  *mode = CUBLAS_POINTER_MODE_HOST;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t /*transa*/, cublasOperation_t /*transb*/,
                              int /*m*/, int /*n*/, int /*k*/, const float* /*alpha*/, const float* a, int /*lda*/,
                              const float* b, int /*ldb*/, const float* /*beta*/, float* c, int /*ldc*/) {
  return multiply(reinterpret_cast<const void*>(&cublasSgemm_v2), "cublasSgemm", handle_of(handle).stream, {a, b, c});
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t /*transa*/, cublasOperation_t /*transb*/,
                            int /*m*/, int /*n*/, int /*k*/, const void* /*alpha*/, const void* a,
                            cudaDataType /*a_type*/, int /*lda*/, const void* b, cudaDataType /*b_type*/, int /*ldb*/,
                            const void* /*beta*/, void* c, cudaDataType /*c_type*/, int /*ldc*/,
                            cublasComputeType_t /*compute*/, cublasGemmAlgo_t /*algorithm*/) {
  static const char function = 0;  // the name of the function means several in C++
  return multiply(&function, "cublasGemmEx", handle_of(handle).stream, {a, b, c});
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t /*operation*/,
                                              cublasLtMatrixLayout_t /*a*/, cublasLtMatrixLayout_t /*b*/,
                                              cublasLtMatrixLayout_t /*c*/, cublasLtMatrixLayout_t /*d*/,
                                              cublasLtMatmulPreference_t /*preference*/, int /*wanted*/,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
  results[0] = {};
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t /*operation*/, const void* /*alpha*/,
                              const void* a, cublasLtMatrixLayout_t /*a_layout*/, const void* b,
                              cublasLtMatrixLayout_t /*b_layout*/, const void* /*beta*/, const void* c,
                              cublasLtMatrixLayout_t /*c_layout*/, void* d, cublasLtMatrixLayout_t /*d_layout*/,
                              const cublasLtMatmulAlgo_t* /*algorithm*/, void* /*workspace*/,
                              std::size_t /*workspace_bytes*/, cudaStream_t stream) {
  return multiply(reinterpret_cast<const void*>(&cublasLtMatmul), "cublasLtMatmul", stream, {a, b, c, d});
}

}  // extern "C"
