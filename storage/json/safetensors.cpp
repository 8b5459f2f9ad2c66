#include "storage/json/safetensors.h"
