
; Finds out whether the processor and its system have instructions.
; The processor is asked once: a virtual machine takes long to answer.

declare hidden void @model_cpuid(i32, i32, ptr) nounwind
declare hidden i32 @model_xgetbv() nounwind
@known = internal global i32 0

define internal i1 @has_instructions() nounwind {
  %answer = alloca [4 x i32]
  %known = load atomic i32, ptr @known monotonic, align 4
  switch i32 %known, label %ask [i32 1, label %yes i32 2, label %no]
ask:
  call void @model_cpuid(i32 0, i32 0, ptr %answer)
  %highest = load i32, ptr %answer
  %enough = icmp uge i32 %highest, 7
  br i1 %enough, label %one, label %lacks
one:
  call void @model_cpuid(i32 1, i32 0, ptr %answer)
  %ecx_ = getelementptr i32, ptr %answer, i64 2
  %basic_c = load i32, ptr %ecx_
  %basic_has = and i32 %basic_c, @LEAF1_ECX@
  %basic_all = icmp eq i32 %basic_has, @LEAF1_ECX@
  br i1 %basic_all, label %system, label %lacks
system:
  %state_low = call i32 @model_xgetbv()
  %state_has = and i32 %state_low, @XCR0@
  %state_all = icmp eq i32 %state_has, @XCR0@
  br i1 %state_all, label %seven, label %lacks
seven:
  call void @model_cpuid(i32 7, i32 0, ptr %answer)
  %ebx_ = getelementptr i32, ptr %answer, i64 1
  %more_b = load i32, ptr %ebx_
  %more_has = and i32 %more_b, @LEAF7_EBX@
  %more_lacks = xor i32 %more_has, @LEAF7_EBX@
  %other_ = getelementptr i32, ptr %answer, i64 2
  %other_c = load i32, ptr %other_
  %other_has = and i32 %other_c, @LEAF7_ECX@
  %other_lacks = xor i32 %other_has, @LEAF7_ECX@
  ; Processors without further features answer 0.
  call void @model_cpuid(i32 7, i32 1, ptr %answer)
  %further_a = load i32, ptr %answer
  %further_has = and i32 %further_a, @LEAF7_1_EAX@
  %further_lacks = xor i32 %further_has, @LEAF7_1_EAX@
  %some_lack = or i32 %more_lacks, %other_lacks
  %lacking = or i32 %some_lack, %further_lacks
  %more_all = icmp eq i32 %lacking, 0
  br i1 %more_all, label %has, label %lacks
has:
  store atomic i32 1, ptr @known monotonic, align 4
  br label %yes
lacks:
  store atomic i32 2, ptr @known monotonic, align 4
  br label %no
yes:
  ret i1 true
no:
  ret i1 false
}
