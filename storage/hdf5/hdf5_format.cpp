#include "storage/hdf5/hdf5_format.h"
