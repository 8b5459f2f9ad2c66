// In place of libnccl: NCCL 2.28.9, as a toolkit of CUDA 13.0 has it. It cannot revoke communicators.
extern "C" int ncclGetVersion(int* version) {
  *version = 22809;
  return 0;
}
