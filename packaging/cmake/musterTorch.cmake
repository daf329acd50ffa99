# The targets that need LibTorch; musterConfig.cmake includes this. The SDK was compiled against one LibTorch and works with
# its patch releases.
set(_muster_libtorch_version @LIBTORCH_VERSION@)
set(_muster_libtorch_default "@LIBTORCH@")

# The first of the places that has a LibTorch, else "".
function(_muster_find_libtorch result)
  set(places ${muster_LIBTORCH})
  if(NOT places)
    foreach(place IN ITEMS "${Torch_ROOT}" "$ENV{Torch_ROOT}" ${CMAKE_PREFIX_PATH} "$ENV{MUSTER_LIBTORCH}" "${_muster_libtorch_default}")
      list(APPEND places "${place}")
    endforeach()
    if(Torch_DIR)
      list(INSERT places 0 "${Torch_DIR}/../../..")
    endif()
  endif()
  foreach(place IN LISTS places)
    # Itself, site-packages, and the share/cmake that PyTorch tells people to put into CMAKE_PREFIX_PATH.
    foreach(below IN ITEMS "" /torch /../..)
      if(place AND EXISTS "${place}${below}/lib/libtorch_cpu.so" AND EXISTS "${place}${below}/include/ATen/ATen.h")
        get_filename_component(folder "${place}${below}" ABSOLUTE)
        set(${result} "${folder}" PARENT_SCOPE)
        return()
      endif()
    endforeach()
  endforeach()
  set(${result} "" PARENT_SCOPE)
endfunction()

function(_muster_read_libtorch_version folder result)
  set(version "")
  foreach(header IN ITEMS torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(EXISTS "${folder}/include/${header}" AND NOT version)
      file(STRINGS "${folder}/include/${header}" lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
      string(REGEX REPLACE "[^;0-9]+" "" version "${lines}")
      string(REPLACE ";" "." version "${version}")
    endif()
  endforeach()
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

# muster::libtorch out of what find_package(Torch) left behind.
function(_muster_adopt_torch)
  add_library(muster::libtorch INTERFACE IMPORTED)
  separate_arguments(flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
  set_target_properties(muster::libtorch PROPERTIES INTERFACE_LINK_LIBRARIES "${TORCH_LIBRARIES}"
                                                    INTERFACE_COMPILE_OPTIONS "${flags}")
endfunction()

# muster::libtorch out of a folder. LibTorch ships headers of other projects (fmt, protobuf), which must not win over the
# program's: hence -idirafter.
function(_muster_use_libtorch folder)
  add_library(muster::libtorch INTERFACE IMPORTED)
  set(includes "SHELL:-idirafter ${folder}/include" "SHELL:-idirafter ${folder}/include/torch/csrc/api/include")
  set_target_properties(
    muster::libtorch
    PROPERTIES INTERFACE_COMPILE_OPTIONS "${includes}"
               INTERFACE_COMPILE_DEFINITIONS "USE_DISTRIBUTED;USE_C10D_GLOO"
               INTERFACE_LINK_LIBRARIES "${folder}/lib/libtorch_cpu.so;${folder}/lib/libc10.so")
endfunction()

set(_muster_torch_reason "")
if(TARGET torch)
  set(_muster_libtorch_found "${TORCH_INSTALL_PREFIX}")
  set(_muster_libtorch_found_version "${Torch_VERSION}")
else()
  _muster_find_libtorch(_muster_libtorch_found)
  if(_muster_libtorch_found)
    _muster_read_libtorch_version("${_muster_libtorch_found}" _muster_libtorch_found_version)
  else()
    set(_muster_torch_reason "no LibTorch found: set muster_LIBTORCH to the folder of a LibTorch ${_muster_libtorch_version}")
  endif()
endif()
string(REGEX MATCH "^[0-9]+[.][0-9]+[.]" _muster_libtorch_series "${_muster_libtorch_version}")
string(FIND "${_muster_libtorch_found_version}" "${_muster_libtorch_series}" _muster_libtorch_match)
if(_muster_libtorch_found AND NOT _muster_libtorch_match EQUAL 0)
  set(_muster_torch_reason "${_muster_libtorch_found} is LibTorch ${_muster_libtorch_found_version}, and this muster was built for ${_muster_libtorch_version}: set muster_LIBTORCH to one of that version, or build muster with MUSTER_LIBTORCH")
endif()

if(NOT _muster_torch_reason)
  if(NOT TARGET muster::libtorch)
    if(TARGET torch)
      _muster_adopt_torch()
    else()
      _muster_use_libtorch("${_muster_libtorch_found}")
    endif()
  endif()
  _muster_add_library(torch 0)
  set_target_properties(
    muster::torch PROPERTIES INTERFACE_LINK_LIBRARIES "muster::worker;muster::libtorch;${CMAKE_DL_LIBS}"
                             INTERFACE_COMPILE_FEATURES cxx_std_20)
  set(muster_torch_FOUND TRUE)
  if(EXISTS "${_muster_prefix}/lib/libmuster_nccl.so")
    set(muster_nccl_FOUND TRUE)
    if(NOT TARGET muster::nccl)
      # What LibTorch's CUDA half needs in turn is looked up when the program starts.
      add_library(muster::nccl INTERFACE IMPORTED)
      set_target_properties(
        muster::nccl
        PROPERTIES INTERFACE_LINK_LIBRARIES
                   "muster::torch;-Wl,--no-as-needed;${_muster_prefix}/lib/libmuster_nccl.so;-Wl,--as-needed"
                   INTERFACE_LINK_OPTIONS "-Wl,--allow-shlib-undefined;-Wl,-rpath,${_muster_prefix}/lib")
    endif()
  endif()
endif()
