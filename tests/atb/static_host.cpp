// A program that no loader looks at: LD_PRELOAD has no effect on it.
#include <cstdio>

int main() { return std::puts("static host") < 0 ? 1 : 0; }
