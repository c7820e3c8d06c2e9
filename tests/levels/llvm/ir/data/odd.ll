; ModuleID = 'odd.c'
source_filename = "odd.c"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

module asm ".globl odd"
module asm "; define void @not_a_function() {"

%struct.list = type { ptr, %struct.item, %"struct.with space" }
%struct.item = type { i32, [2 x %struct.deep] }
%struct.deep = type <{ i8, double }>
%"struct.with space" = type { <4 x float> }
%struct.unused = type { i32 }
%struct.opaque = type opaque

$odd_inline = comdat any

$"quoted group" = comdat largest

@0 = private unnamed_addr constant [4 x i8] c"%d\0A\00", align 1
@text = private unnamed_addr constant [32 x i8] c"; comment? @name %x #0 !1 } { \22\00", section ".rodata.str", align 1
@squares = internal constant [4 x i32] [i32 0, i32 1, i32 4, i32 9], align 16
@handlers = internal constant [2 x ptr] [ptr @callee, ptr @variadic], align 16
@large = internal constant [100 x i32] [i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31, i32 32, i32 33, i32 34, i32 35, i32 36, i32 37, i32 38, i32 39, i32 40, i32 41, i32 42, i32 43, i32 44, i32 45, i32 46, i32 47, i32 48, i32 49, i32 50, i32 51, i32 52, i32 53, i32 54, i32 55, i32 56, i32 57, i32 58, i32 59, i32 60, i32 61, i32 62, i32 63, i32 64, i32 65, i32 66, i32 67, i32 68, i32 69, i32 70, i32 71, i32 72, i32 73, i32 74, i32 75, i32 76, i32 77, i32 78, i32 79, i32 80, i32 81, i32 82, i32 83, i32 84, i32 85, i32 86, i32 87, i32 88, i32 89, i32 90, i32 91, i32 92, i32 93, i32 94, i32 95, i32 96, i32 97, i32 98, i32 99], align 16
@replaceable = weak constant i32 7, align 4
@counter = internal global i32 5, align 4
@"odd name" = dso_local global { i32, %struct.item } zeroinitializer, comdat($"quoted group"), align 8, !dbg !20
@local = internal thread_local(initialexec) global i64 1, align 8
@far = addrspace(1) global ptr addrspace(1) null, align 8
@absent = extern_weak global i32, align 4
@places = internal global [2 x ptr] [ptr blockaddress(@jumps, %3), ptr blockaddress(@jumps, %4)], align 16
@inner = internal global ptr null, align 8
@data_alias = hidden alias i32, ptr @counter
@call_alias = weak alias i32 (ptr, ...), ptr @variadic

@resolved = ifunc i32 (i32), ptr @resolver

; Function Attrs: noinline nounwind optnone uwtable
define internal fastcc zeroext i1 @callee(ptr noundef byval(%struct.list) align 8 %0, { i32, %struct.item } %1) unnamed_addr #0 section ".text.odd" align 16 !dbg !21 {
    #dbg_declare(ptr %0, !22, !DIExpression(), !23)
  %3 = load i32, ptr @counter, align 4, !tbaa !30, !dbg !23 ; a comment with @text in it
  %4 = icmp eq i32 %3, 0
  ret i1 %4
}

define dso_local i32 @variadic(ptr noundef %0, ...) local_unnamed_addr #0 {
  %2 = call fastcc zeroext i1 @callee(ptr noundef byval(%struct.list) align 8 %0, { i32, %struct.item } zeroinitializer) #3
  %3 = zext i1 %2 to i32
  ret i32 %3
}

define linkonce_odr i32 @odd_inline(i32 %0) #1 comdat personality ptr @__gxx_personality_v0 {
  %2 = invoke i32 (ptr, ...) @variadic(ptr @text, i32 %0)
          to label %3 unwind label %4

3:                                                ; preds = %1
  ret i32 %2

4:                                                ; preds = %1
  %5 = landingpad { ptr, i32 }
          cleanup
  call void @llvm.experimental.noalias.scope.decl(metadata !40)
  %6 = call i64 @llvm.read_register.i64(metadata !43)
  call void asm sideeffect "mov #1, x0 ; } @counter", "~{memory}"() #2, !srcloc !44
  resume { ptr, i32 } %5
}

define weak i32 @"many globals"(i32 %0) {
  %2 = load i32, ptr @"odd name", align 4
  %3 = load i32, ptr @squares, align 4
  %4 = load i32, ptr getelementptr inbounds ([100 x i32], ptr @large, i64 0, i64 5), align 4
  %5 = load i32, ptr @replaceable, align 4
  %6 = load i32, ptr @absent, align 4
  %7 = load i32, ptr @data_alias, align 4
  %8 = load ptr, ptr @handlers, align 8
  %9 = call i32 (ptr, ...) @call_alias(ptr %8, ptr addrspace(1) @far)
  %10 = call i32 @resolved(i32 %9)
  %11 = call ptr @llvm.threadlocal.address.p0(ptr align 8 @local)
  %12 = call i32 (ptr, ...) @printf(ptr @0, i32 %10)
  br label %13, !llvm.loop !50

13:                                               ; preds = %13, %1
  %14 = phi i32 [ %12, %1 ], [ %15, %13 ]
  %15 = add nsw i32 %14, 1
  %16 = icmp slt i32 %15, %0
  br i1 %16, label %13, label %17, !llvm.loop !50

17:                                               ; preds = %13
  ret i32 %15
}

define void @takes_other() {
  store ptr blockaddress(@jumps, %3), ptr @inner, align 8
  ret void
}

define i32 @jumps(i64 %0) {
  %2 = getelementptr inbounds [2 x ptr], ptr @places, i64 0, i64 %0
  %target = load ptr, ptr %2, align 8
  indirectbr ptr %target, [label %3, label %4]

3:                                                ; preds = %1
  ret i32 1

4:                                                ; preds = %1
  ret i32 2
}

define internal ptr @resolver() prefix { i32, ptr } { i32 1, ptr @squares } {
  ret ptr @stable
}

define i32 @stable(i32 signext %x) gc "statepoint-example" {
entry:
  %"quoted value" = add i32 %x, 1
  br label %"a; block"

"a; block":                                       ; preds = %entry
  %y = phi i32 [ %"quoted value", %entry ]
  ret i32 %y
}

define void @recurses(ptr sret({ %struct.list, i32 }) align 8 %0, ptr %1) #0 {
  %3 = alloca { i32, %struct.deep }, align 8
  %4 = load atomic i32, ptr %1 seq_cst, align 4
  store i32 %4, ptr %0, align 1
  call void @recurses(ptr sret({ %struct.list, i32 }) align 8 %0, ptr noundef %1)
  ret void
}

declare !dbg !24 noundef i32 @printf(ptr noundef, ...) #2

declare i32 @__gxx_personality_v0(...)

declare ptr @llvm.threadlocal.address.p0(ptr)

declare void @llvm.experimental.noalias.scope.decl(metadata)

declare i64 @llvm.read_register.i64(metadata)

attributes #0 = { noinline nounwind optnone uwtable "frame-pointer"="all" "target-features"="+cx8,+sse2" }
attributes #1 = { nounwind "target-features"="+avx2,+cx8,+sse2" }
attributes #2 = { nounwind returns_twice }
attributes #3 = { nobuiltin "no-builtins" }

!llvm.module.flags = !{!0}
!llvm.dbg.cu = !{!10}

!0 = !{i32 2, !"Debug Info Version", i32 3}
!10 = distinct !DICompileUnit(language: DW_LANG_C11, file: !11, emissionKind: FullDebug)
!11 = !DIFile(filename: "odd.c", directory: "/")
!20 = !DIGlobalVariableExpression(var: !25, expr: !DIExpression())
!21 = distinct !DISubprogram(name: "callee", scope: !11, file: !11, unit: !10, spFlags: DISPFlagDefinition)
!22 = !DILocalVariable(name: "list", scope: !21)
!23 = !DILocation(line: 1, scope: !21)
!24 = !DISubprogram(name: "printf", scope: !11, file: !11, spFlags: DISPFlagOptimized)
!25 = distinct !DIGlobalVariable(name: "odd name", scope: !10, type: !26, isDefinition: true)
!26 = !DIBasicType(name: "int", size: 32, encoding: DW_ATE_signed)
!30 = !{!31, !31, i64 0}
!31 = !{!"int", !32}
!32 = !{!"root"}
!40 = !{!41}
!41 = distinct !{!41, !42}
!42 = distinct !{!42}
!43 = !{!"rsp"}
!44 = !{i64 12}
!50 = distinct !{!50, !23, !51}
!51 = !{!"llvm.loop.mustprogress"}
