#include "storage/manifest.h"
