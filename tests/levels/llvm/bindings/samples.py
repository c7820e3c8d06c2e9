"""Small modules of LLVM IR, with what is known of them."""

SUM = """\
define i32 @sum(ptr %items, i32 %count) minsize optsize {
entry:
  %total = alloca i32
  %place = alloca i32
  call void @llvm.lifetime.start.p0(ptr %total)
  store i32 0, ptr %total
  store i32 0, ptr %place
  br label %head

head:
  %i = load i32, ptr %place
  %more = icmp slt i32 %i, %count
  br i1 %more, label %body, label %end

body:
  %at = getelementptr inbounds i32, ptr %items, i32 %i
  %item = load i32, ptr %at
  %before = load i32, ptr %total
  %after = add i32 %before, %item
  store i32 %after, ptr %total
  %next = add i32 %i, 1
  store i32 %next, ptr %place
  br label %head

end:
  %result = load i32, ptr %total
  call void @llvm.lifetime.end.p0(ptr %total)
  ret i32 %result
}

declare void @llvm.lifetime.start.p0(ptr)
declare void @llvm.lifetime.end.p0(ptr)
"""
SUM_INSTRUCTIONS = 18

# Every form that takes more than one line in print, each intrinsic that does not count, and two functions.
FORMS = """\
@table = private constant [2 x ptr] [ptr blockaddress(@forms, %one), ptr blockaddress(@forms, %two)]

define i32 @forms(i32 %x, ptr %p) personality ptr @personality !dbg !4 {
entry:
  %positive = icmp sgt i32 %x, 0
  tail call void @llvm.assume(i1 %positive)
  call void @llvm.experimental.noalias.scope.decl(metadata !9)
    #dbg_value(i32 %x, !7, !DIExpression(), !8)
  switch i32 %x, label %one [
    i32 1, label %two
    i32 2, label %jump
  ]

jump:
  %slot = getelementptr [2 x ptr], ptr @table, i32 0, i32 %x
  %target = load ptr, ptr %slot
  indirectbr ptr %target, [label %one, label %two]

one:
  %answer = invoke i32 @callee(i32 %x)
          to label %fine unwind label %caught

fine:
  ret i32 %answer

caught:
  %exception = landingpad { ptr, i32 }
          catch ptr null
          filter [1 x ptr] [ptr null]
  br label %two

two:
  %text = call i32 asm sideeffect "nop\\0A  nop", "=r"()
  %sum = add i32 %text, %x
  ret i32 %sum
}

define internal i32 @callee(i32 %y) {
  %twice = shl i32 %y, 1
  ret i32 %twice
}

declare i32 @personality(...)
declare void @llvm.assume(i1)
declare void @llvm.experimental.noalias.scope.decl(metadata)

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!3}
!0 = distinct !DICompileUnit(language: DW_LANG_C11, file: !1, emissionKind: FullDebug)
!1 = !DIFile(filename: "a.c", directory: "/")
!2 = !DIBasicType(name: "int", size: 32, encoding: DW_ATE_signed)
!3 = !{i32 2, !"Debug Info Version", i32 3}
!4 = distinct !DISubprogram(name: "forms", scope: !1, file: !1, line: 1, type: !5, unit: !0)
!5 = !DISubroutineType(types: !6)
!6 = !{!2, !2}
!7 = !DILocalVariable(name: "x", scope: !4, file: !1, line: 1, type: !2)
!8 = !DILocation(line: 1, scope: !4)
!9 = !{!10}
!10 = distinct !{!10, !11}
!11 = distinct !{!11}
"""
FORMS_INSTRUCTIONS = 14

# `instcombine` needs two rounds here, where it promises to need one.
TWO_ROUNDS = """\
define i64 @rounds(ptr noundef %0, ptr %1, i8 %2, i32 %3, i1 %4, i32 %5, i1 %6, i32 %7, i1 %8) {
  %10 = alloca ptr
  %11 = alloca i64
  %12 = alloca i32
  %13 = load ptr, ptr %0
  %14 = load i8, ptr %1
  %15 = zext i8 %2 to i32
  %16 = icmp slt i32 %3, 1
  br i1 %4, label %17, label %18

17:
  store i32 0, ptr %12
  br label %29

18:
  %19 = and i32 %3, 224
  %20 = icmp eq i32 %5, 192
  br i1 %6, label %21, label %22

21:
  store i32 0, ptr %12
  br label %28

22:
  %23 = and i32 %3, 240
  %24 = icmp eq i32 %7, 224
  br i1 %8, label %25, label %26

25:
  store i32 0, ptr %12
  br label %27

26:
  store i32 0, ptr %12
  br label %27

27:
  br label %28

28:
  br label %29

29:
  store ptr null, ptr %10
  br label %30

30:
  %31 = load i32, ptr %12
  %32 = load ptr, ptr %10
  %33 = load i64, ptr null
  %34 = shl i64 0, 0
  store i64 0, ptr null
  br label %35

35:
  %36 = add nsw i32 %31, 1
  store i32 %36, ptr %12
  %37 = getelementptr inbounds nuw i8, ptr %32, i32 1
  store ptr %37, ptr %10
  br label %30
}
"""

INSIDE_OUT = """\
define i32 @f(i32 %x) {
entry:
  br label %end
end:
  %a = add i32 %b, 1
  %b = add i32 %x, 1
  ret i32 %a
}
"""

SAMPLES = {"sum": SUM, "forms": FORMS, "two_rounds": TWO_ROUNDS}
