// Export macro of the shared library; everything without it has hidden visibility.
#pragma once

#if defined(DECLIVITY_SHARED) && defined(_WIN32)
#if defined(DECLIVITY_BUILDING)
#define DECLIVITY_API __declspec(dllexport)
#else
#define DECLIVITY_API __declspec(dllimport)
#endif
#elif defined(__GNUC__) || defined(__clang__)
#define DECLIVITY_API __attribute__((visibility("default")))
#else
#define DECLIVITY_API
#endif
