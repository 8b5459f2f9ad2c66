#include "storage/catalog.h"
