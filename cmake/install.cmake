# cmake --install: headers, libraries, pkg-config files and CMake packages.
include(GNUInstallDirs)
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS ggml ggml_static EXPORT ggml-targets)
