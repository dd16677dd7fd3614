# Debian's MLIR targets carry INTERFACE_LINK_LIBRARIES "...;LLVM" (the dylib). Every one is rewritten so
# that the *consumer* chooses: a target with property TW_STATIC gets static MLIR + static LLVM components,
# any other gets libMLIR.so + libLLVM.so. $<TARGET_PROPERTY:p> is evaluated on the head (linked) target.
find_package(MLIR 22.1 REQUIRED CONFIG)
find_library(TW_ZSTD_A NAMES libzstd.a REQUIRED)
find_library(TW_Z_A NAMES libz.a REQUIRED)
set(TW_LLVM_COMPONENTS core support passes target orcjit jitlink x86codegen x86desc x86info
    nvptxcodegen nvptxdesc nvptxinfo frontendopenmp frontendoffloading irreader bitreader bitwriter linker
    transformutils)
llvm_map_components_to_libnames(TW_LLVM_LIBS ${TW_LLVM_COMPONENTS})
set(_static "$<BOOL:$<TARGET_PROPERTY:TW_STATIC>>")
foreach(t IN LISTS MLIR_EXPORTED_TARGETS)
  get_target_property(ty ${t} TYPE)
  if(NOT ty STREQUAL "STATIC_LIBRARY")
    continue()
  endif()
  get_target_property(deps ${t} INTERFACE_LINK_LIBRARIES)
  if(NOT deps)
    set(deps)
  endif()
  set(keep)
  set(capi)
  foreach(d IN LISTS deps)
    if(d STREQUAL "LLVM")
      continue()
    elseif(d MATCHES "^MLIRCAPI")
      list(APPEND capi ${d})
    else()
      list(APPEND keep ${d})
    endif()
  endforeach()
  set_property(TARGET ${t} PROPERTY INTERFACE_LINK_LIBRARIES
    "${capi};$<${_static}:${keep}>;$<${_static}:${TW_LLVM_LIBS}>;$<$<NOT:${_static}>:MLIR;LLVM>")
endforeach()
# LLVMSupport names libz3.so, ZLIB::ZLIB (.so) and zstd::libzstd_shared: static archives for the wheel, z3 dropped.
get_target_property(deps LLVMSupport INTERFACE_LINK_LIBRARIES)
list(FILTER deps EXCLUDE REGEX "z3|ZLIB|zstd")
set_property(TARGET LLVMSupport PROPERTY INTERFACE_LINK_LIBRARIES "${deps};${TW_ZSTD_A};${TW_Z_A}")

# What our own targets link: the C API archives (not in libMLIR.so), and in static mode what the C++
# registration names. The dylib has all of the latter.
add_library(tw_mlir INTERFACE)
target_link_libraries(tw_mlir INTERFACE
  MLIRCAPIIR MLIRCAPIArith MLIRCAPISCF MLIRCAPILLVM MLIRCAPINVVM MLIRCAPIVector MLIRCAPITarget MLIRCAPITransforms
  "$<${_static}:MLIRArithToLLVM;MLIRArithTransforms;MLIRControlFlowToLLVM;MLIRFuncToLLVM;MLIRMathToLLVM;MLIRIndexToLLVM;MLIRVectorToLLVMPass;MLIRMemRefToLLVM;MLIRMemRefTransforms;MLIRAffineToStandard;MLIRNVVMToLLVM;MLIRSCFToControlFlow;MLIRConvertToLLVMPass;MLIRUBToLLVM;MLIRReconcileUnrealizedCasts;MLIRTransforms;MLIRMathDialect;MLIRTensorDialect;MLIRBuiltinToLLVMIRTranslation;MLIRLLVMToLLVMIRTranslation;MLIRNVVMToLLVMIRTranslation>"
  "$<$<NOT:${_static}>:MLIR;LLVM>")
target_include_directories(tw_mlir SYSTEM INTERFACE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
