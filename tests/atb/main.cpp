// Apart from the rest so that other programs, such as a Python interpreter, can load it too.
extern "C" int atb_host_run(int argc, char** argv);

int main(int argc, char** argv) { return atb_host_run(argc, argv); }
