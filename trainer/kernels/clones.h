#pragma once

// Compiles a loop twice, for every x86-64 and for those with AVX2; a program picks one when it starts. AVX2 without
// FMA: nothing can be contracted, so that the clones agree in every bit.
//
// Not under ThreadSanitizer. The code that picks runs before the program is relocated, and g++ makes it call the
// sanitizer, which is not there yet.
#ifdef __SANITIZE_THREAD__
#define EVERSTEP_CLONES
#else
#define EVERSTEP_CLONES __attribute__((target_clones("avx2", "default")))
#endif
