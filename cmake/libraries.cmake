# libggml and libllama, shared and static from the same objects.
# Code that calls nobody's callbacks needs no tables for unwinding: no exception of a C++ program passes through it.
if(LAMINA_SANITIZE)
  set(LAMINA_LEAF "")
else()
  set(LAMINA_LEAF $<$<CONFIG:Release>:-fno-asynchronous-unwind-tables>)
endif()
file(GLOB_RECURSE GGML_SOURCES CONFIGURE_DEPENDS src/base/*.c src/tensor/graph/*.c src/tensor/ops/*.c src/tensor/alloc/*.c
  src/tensor/device/*.c src/tensor/backend/*.c src/tensor/gguf/*.c src/tensor/opt/*.c)
# Files of kern/ and type/ that are compiled once; all others there once per ISA level.
set(GGML_ONCE src/tensor/kern/dispatch.c src/tensor/kern/isa.c src/tensor/type/registry.c src/tensor/type/quant.c src/tensor/type/element.c
  src/tensor/type/codebook.c)
file(GLOB KERN_SOURCES CONFIGURE_DEPENDS src/tensor/kern/*.c)
file(GLOB TYPE_SOURCES CONFIGURE_DEPENDS src/tensor/type/*.c)
foreach(f ${GGML_ONCE})
  list(REMOVE_ITEM KERN_SOURCES ${PROJECT_SOURCE_DIR}/${f})
  list(REMOVE_ITEM TYPE_SOURCES ${PROJECT_SOURCE_DIR}/${f})
  if(EXISTS ${PROJECT_SOURCE_DIR}/${f})
    list(APPEND GGML_SOURCES ${PROJECT_SOURCE_DIR}/${f})
  endif()
endforeach()

file(GLOB GGML_LEAF CONFIGURE_DEPENDS src/tensor/ops/*.c src/tensor/alloc/*.c src/tensor/type/*.c)
list(FILTER GGML_LEAF EXCLUDE REGEX "/ops/custom[a-z0-9_]*\\.c$")
set_source_files_properties(${GGML_LEAF} PROPERTIES COMPILE_OPTIONS "${LAMINA_LEAF}")
add_library(ggml_objects OBJECT ${GGML_SOURCES})
target_link_libraries(ggml_objects PRIVATE lamina_flags)
set(GGML_OBJECTS $<TARGET_OBJECTS:ggml_objects>)

# Objects of `folder`, once per level of `levels`.
function(lamina_level_objects folder sources levels)
  foreach(level ${${levels}})
    add_library(${folder}_${level} OBJECT ${${sources}})
    target_link_libraries(${folder}_${level} PRIVATE lamina_flags)
    target_compile_definitions(${folder}_${level} PRIVATE ISA=${level} ISA_IS_${level}=1)
    # -Wno-psabi: vectors wider than the level are only passed to inlined functions
    target_compile_options(${folder}_${level} PRIVATE ${ISA_FLAGS_${level}} ${LAMINA_LEAF} -Wno-psabi)
    # The checks for undefined behaviour multiply the time that vector code takes to compile; the scalar level, from the same source,
    # has them all.
    if(LAMINA_SANITIZE AND NOT level STREQUAL scalar)
      target_compile_options(${folder}_${level} PRIVATE -O1 -fno-sanitize=undefined)
    endif()
    list(APPEND GGML_OBJECTS $<TARGET_OBJECTS:${folder}_${level}>)
  endforeach()
  set(GGML_OBJECTS ${GGML_OBJECTS} PARENT_SCOPE)
endfunction()
# Families that kern.def lists as KERN_ALL have every level; the others those that differ in vector width.
file(STRINGS src/tensor/kern/kern.def ALL_FAMILIES REGEX "^KERN_ALL")
foreach(line ${ALL_FAMILIES})
  string(REGEX REPLACE "KERN_ALL\\((.*)\\)" "\\1" family ${line})
  set(family_sources ${KERN_SOURCES})
  list(FILTER family_sources INCLUDE REGEX "/${family}(_[a-z0-9_]*)?\\.c$")
  list(APPEND KERN_ALL_SOURCES ${family_sources})
endforeach()
list(REMOVE_ITEM KERN_SOURCES ${KERN_ALL_SOURCES})
lamina_level_objects(kern KERN_SOURCES TYPE_LEVELS)
if(LAMINA_SANITIZE)
  lamina_level_objects(kernall KERN_ALL_SOURCES TYPE_LEVELS)
  set_source_files_properties(src/tensor/kern/dispatch.c PROPERTIES COMPILE_DEFINITIONS LAMINA_BASE_LEVELS)
else()
  lamina_level_objects(kernall KERN_ALL_SOURCES ISA_LEVELS)
endif()
if(TYPE_SOURCES)
  lamina_level_objects(type TYPE_SOURCES TYPE_LEVELS)
endif()

# What computes nothing of a model: small rather than fast.
file(GLOB GGML_COLD CONFIGURE_DEPENDS src/tensor/backend/sim/*.c src/tensor/opt/*.c src/tensor/gguf/edit.c src/tensor/gguf/write.c src/tensor/graph/print.c)
set_source_files_properties(${GGML_COLD} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-Os>)

add_library(ggml SHARED ${GGML_OBJECTS})
add_library(ggml_static STATIC ${GGML_OBJECTS})
set_target_properties(ggml_static PROPERTIES OUTPUT_NAME ggml)

file(GLOB_RECURSE LLAMA_SOURCES CONFIGURE_DEPENDS src/llm/*.c)
if(LLAMA_SOURCES)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-32 libpcre2-8)
  pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
  pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
  set(LLAMA_DEPS PkgConfig::PCRE2 PkgConfig::UTF8PROC PkgConfig::JANSSON)
  # What runs once per model or file: small rather than fast.
  file(GLOB LLAMA_LEAF CONFIGURE_DEPENDS src/llm/block/*.c src/llm/grammar/*.c src/llm/vocab/*.c src/llm/memory/*.c)
  set_source_files_properties(${LLAMA_LEAF} PROPERTIES COMPILE_OPTIONS "${LAMINA_LEAF}")
  file(GLOB LLAMA_COLD CONFIGURE_DEPENDS src/llm/arch/*.c src/llm/chat/*.c src/llm/convert/*.c src/llm/quantize/*.c src/llm/grammar/schema*.c
    src/llm/grammar/parse.c src/llm/grammar/build.c src/llm/memory/state.c)
  set_source_files_properties(${LLAMA_COLD} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-Os>;${LAMINA_LEAF}")
  file(GLOB LLAMA_MODEL CONFIGURE_DEPENDS src/llm/model/*.c src/llm/run/plan.c src/llm/run/state.c src/llm/run/train.c)
  set_source_files_properties(${LLAMA_MODEL} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-Os>)
  # Of base, only what holds no state (src/base/README.md).
  add_library(llama_objects OBJECT ${LLAMA_SOURCES} src/base/file.c src/base/env.c)
  target_link_libraries(llama_objects PRIVATE lamina_flags ${LLAMA_DEPS})
  add_library(llama SHARED $<TARGET_OBJECTS:llama_objects>)
  target_link_libraries(llama PUBLIC ggml PRIVATE lamina_flags ${LLAMA_DEPS})
  add_library(llama::llama ALIAS llama)
  add_library(llama_static STATIC $<TARGET_OBJECTS:llama_objects>)
  set_target_properties(llama_static PROPERTIES OUTPUT_NAME llama)
  target_link_libraries(llama_static PUBLIC ggml_static PRIVATE ${LLAMA_DEPS})
endif()

add_library(ggml::ggml ALIAS ggml)  # the name that find_package gives
foreach(t ggml ggml_static)
  target_include_directories(${t} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
  target_link_libraries(${t} PRIVATE $<BUILD_INTERFACE:lamina_flags> PUBLIC Threads::Threads m dl)
endforeach()

# Programs written for the split libraries of the field link these names.
foreach(n base cpu)
  add_custom_command(TARGET ggml POST_BUILD COMMAND ${CMAKE_COMMAND} -E create_symlink libggml.so
    ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libggml-${n}.so)
endforeach()
