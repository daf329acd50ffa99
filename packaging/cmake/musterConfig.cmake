# find_package(muster 0.1 CONFIG [COMPONENTS worker|torch|nccl …])
#
#   muster::worker    <muster/worker.h>, <muster/worker_c.h>: identity and the line to the agent. No LibTorch.
#   muster::torch     <muster/torch.h>. Brings LibTorch and muster::worker.
#   muster::libtorch  LibTorch alone: what find_package(Torch) found before, else LibTorch's CPU half, for which no CUDA
#                     toolkit is needed.
#   muster::nccl      links libmuster_nccl.so, which is otherwise loaded when init() needs it.
#
# A component that cannot be had makes muster_FOUND false, with the reason, if it was asked for; else its target is not there.
# Set before:
#   muster_USE_STATIC_LIBS  ON: the archives instead of the shared libraries
#   muster_LIBTORCH         a LibTorch: the folder that has include/ and lib/, or the one above. Else Torch_DIR,
#                           Torch_ROOT, CMAKE_PREFIX_PATH, the environment's MUSTER_LIBTORCH, and the one that this SDK was
#                           built with are tried.

get_filename_component(_muster_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(muster_worker_FOUND TRUE)
set(muster_torch_FOUND FALSE)
set(muster_nccl_FOUND FALSE)
set(_muster_torch_reason "this muster was installed without the part for LibTorch")
set(_muster_nccl_reason "this muster was installed without the NCCL component")

# The library `name` (libmuster_NAME.so.ABI or its archive) as target muster::NAME.
function(_muster_add_library name abi)
  if(TARGET muster::${name})
    return()
  endif()
  if(muster_USE_STATIC_LIBS)
    add_library(muster::${name} STATIC IMPORTED)
    set_target_properties(muster::${name} PROPERTIES IMPORTED_LOCATION "${_muster_prefix}/lib/libmuster_${name}.a"
                                                     IMPORTED_LINK_INTERFACE_LANGUAGES CXX)
  else()
    add_library(muster::${name} SHARED IMPORTED)
    set_target_properties(muster::${name} PROPERTIES IMPORTED_LOCATION "${_muster_prefix}/lib/libmuster_${name}.so.${abi}"
                                                     IMPORTED_SONAME libmuster_${name}.so.${abi})
  endif()
  set_target_properties(muster::${name} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${_muster_prefix}/include")
endfunction()

_muster_add_library(worker 1)
if(EXISTS "${CMAKE_CURRENT_LIST_DIR}/musterTorch.cmake")
  include("${CMAKE_CURRENT_LIST_DIR}/musterTorch.cmake")
endif()

foreach(_muster_component IN LISTS muster_FIND_COMPONENTS)
  if(NOT muster_${_muster_component}_FOUND AND muster_FIND_REQUIRED_${_muster_component})
    set(muster_FOUND FALSE)
    if(NOT DEFINED _muster_${_muster_component}_reason)
      set(_muster_${_muster_component}_reason "there are worker, torch and nccl")
    endif()
    set(muster_NOT_FOUND_MESSAGE "muster's component ${_muster_component}: ${_muster_${_muster_component}_reason}")
  endif()
endforeach()
