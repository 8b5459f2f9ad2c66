#include "storage/tensor_file.h"
