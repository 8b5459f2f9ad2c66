#include "storage/documents.h"
