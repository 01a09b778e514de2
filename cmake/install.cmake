# cmake --install: headers, libraries, programs, pkg-config files, CMake packages (ggml::ggml, llama), completions, manual page.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# One package per library. Static archives go along; their names equal the shared ones'.
function(lamina_package name description requires private_libs)
  set_target_properties(${name} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0)
  install(TARGETS ${name} EXPORT ${name}-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(TARGETS ${name}_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT ${name}-targets NAMESPACE ${name}:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/${name})
  set(PACKAGE ${name})
  set(PACKAGE_DESCRIPTION "${description}")
  set(PACKAGE_REQUIRES "${requires}")
  set(PACKAGE_PRIVATE_LIBS "${private_libs}")
  configure_file(cmake/package.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  configure_package_config_file(cmake/${name}-config.cmake.in ${PROJECT_BINARY_DIR}/${name}-config.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/${name})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/${name}-config-version.cmake COMPATIBILITY AnyNewerVersion)
  install(FILES ${PROJECT_BINARY_DIR}/${name}-config.cmake ${PROJECT_BINARY_DIR}/${name}-config-version.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/${name})
endfunction()

lamina_package(ggml "Tensor library" "" "-lpthread -ldl -lm")
foreach(n base cpu)
  install(CODE "execute_process(COMMAND ${CMAKE_COMMAND} -E create_symlink libggml.so
    \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/libggml-${n}.so)")
endforeach()
if(TARGET llama)
  # Built as they are installed: a path that is changed later is padded with an empty one, which stands for the current folder.
  set_target_properties(llama PROPERTIES INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON)
  lamina_package(llama "Language-model runtime" "ggml" "-lpcre2-32 -lpcre2-8 -lutf8proc -ljansson")
endif()
if(TARGET lamina)
  set(folders "$ORIGIN/../lib" "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  list(REMOVE_DUPLICATES folders)
  set_target_properties(lamina PROPERTIES INSTALL_RPATH "${folders}" BUILD_WITH_INSTALL_RPATH ON)
  install(TARGETS lamina RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(CODE "
    set(root \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\")
    file(MAKE_DIRECTORY \"\${root}/bash-completion/completions\" \"\${root}/zsh/site-functions\" \"\${root}/man/man1\")
    execute_process(COMMAND $<TARGET_FILE:lamina> completion bash OUTPUT_FILE \"\${root}/bash-completion/completions/lamina\")
    execute_process(COMMAND $<TARGET_FILE:lamina> completion zsh OUTPUT_FILE \"\${root}/zsh/site-functions/_lamina\")
    execute_process(COMMAND $<TARGET_FILE:lamina> man OUTPUT_FILE \"\${root}/man/man1/lamina.1\")")
endif()
