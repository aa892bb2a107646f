// Binds the thread functions that moved in glibc 2.34 to the version that older ones have too, so
// that what is built on a new system still loads on glibc 2.28. Include it in the source that calls
// them.
//
// Sanitizers bring their own versions of these functions, under no version at all.
#pragma once

#if defined(__GLIBC__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#if defined(__x86_64__)
__asm__(".symver pthread_create, pthread_create@GLIBC_2.2.5");
__asm__(".symver pthread_join, pthread_join@GLIBC_2.2.5");
__asm__(".symver pthread_condattr_setclock, pthread_condattr_setclock@GLIBC_2.3.3");
#elif defined(__aarch64__)
__asm__(".symver pthread_create, pthread_create@GLIBC_2.17");
__asm__(".symver pthread_join, pthread_join@GLIBC_2.17");
__asm__(".symver pthread_condattr_setclock, pthread_condattr_setclock@GLIBC_2.17");
#endif
#endif
