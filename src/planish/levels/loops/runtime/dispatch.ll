; Functions of planish.levels.loops.runtime.dispatch, which find the plan for a call, and run it.
; Names between @ signs are replaced before the text is compiled.

; Buckets are by the first operand's first extent: an array without dimensions has none, and is not found.
; `says`: a literal in a program is one object, so mostly the addresses decide.
define internal i1 @is_like(ptr %array, ptr %operand) {
  %class_ = getelementptr i8, ptr %array, i64 8
  %class = load i64, ptr %class_
  %is_array = icmp eq i64 %class, @ARRAY_TYPE@
  br i1 %is_array, label %typed, label %no
typed:
  %type_ = getelementptr i8, ptr %array, i64 @descr@
  %type = load i64, ptr %type_
  %type_wanted = load i64, ptr %operand
  %same_type = icmp eq i64 %type, %type_wanted
  %flags_ = getelementptr i8, ptr %array, i64 @flags@
  %flags = load i32, ptr %flags_
  %aligned = and i32 %flags, @ALIGNED@
  %is_aligned = icmp ne i32 %aligned, 0
  %nd_ = getelementptr i8, ptr %array, i64 @nd@
  %nd32 = load i32, ptr %nd_
  %nd = sext i32 %nd32 to i64
  %nd_wanted_ = getelementptr i64, ptr %operand, i64 1
  %nd_wanted = load i64, ptr %nd_wanted_
  %same_nd = icmp eq i64 %nd, %nd_wanted
  %right = and i1 %same_type, %is_aligned
  %all = and i1 %right, %same_nd
  br i1 %all, label %placed, label %no
placed:
  %extents_ = getelementptr i8, ptr %array, i64 @extents@
  %extents = load ptr, ptr %extents_
  %strides_ = getelementptr i8, ptr %array, i64 @strides@
  %strides = load ptr, ptr %strides_
  %extents_wanted_ = getelementptr ptr, ptr %operand, i64 2
  %extents_wanted = load ptr, ptr %extents_wanted_
  %strides_wanted_ = getelementptr ptr, ptr %operand, i64 3
  %strides_wanted = load ptr, ptr %strides_wanted_
  br label %each
each:
  %d = phi i64 [0, %placed], [%next, %same]
  %end = icmp eq i64 %d, %nd
  br i1 %end, label %yes, label %compare
compare:
  %extent_ = getelementptr i64, ptr %extents, i64 %d
  %extent = load i64, ptr %extent_
  %extent_wanted_ = getelementptr i64, ptr %extents_wanted, i64 %d
  %extent_wanted = load i64, ptr %extent_wanted_
  %stride_ = getelementptr i64, ptr %strides, i64 %d
  %stride = load i64, ptr %stride_
  %stride_wanted_ = getelementptr i64, ptr %strides_wanted, i64 %d
  %stride_wanted = load i64, ptr %stride_wanted_
  %same_extent = icmp eq i64 %extent, %extent_wanted
  %same_stride = icmp eq i64 %stride, %stride_wanted
  %both = and i1 %same_extent, %same_stride
  br i1 %both, label %same, label %no
same:
  %next = add i64 %d, 1
  br label %each
yes:
  ret i1 true
no:
  ret i1 false
}

define internal i1 @says(ptr %plan, ptr %args) {
  %wanted_ = getelementptr ptr, ptr %plan, i64 @plan.subscripts@
  %wanted = load ptr, ptr %wanted_
  %none = icmp eq ptr %wanted, null
  br i1 %none, label %yes, label %look
look:
  %text = load ptr, ptr %args
  %identical = icmp eq ptr %text, %wanted
  br i1 %identical, label %yes, label %classed
classed:
  %class_ = getelementptr i8, ptr %text, i64 8
  %class = load i64, ptr %class_
  %is_text = icmp eq i64 %class, @TEXT_TYPE@
  br i1 %is_text, label %compare, label %no
compare:
  %order = call i32 @PyUnicode_Compare@(ptr %text, ptr %wanted)
  %equal = icmp eq i32 %order, 0
  br i1 %equal, label %yes, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

define internal i1 @fits(ptr %plan, ptr %args, ptr %operands, i64 %count) {
  %count_wanted_ = getelementptr i64, ptr %plan, i64 @plan.operands@
  %count_wanted = load i64, ptr %count_wanted_
  %as_many = icmp eq i64 %count, %count_wanted
  br i1 %as_many, label %each_, label %no
each_:
  %first_ = getelementptr ptr, ptr %plan, i64 @plan.operand@
  %first = load ptr, ptr %first_
  br label %each
each:
  %i = phi i64 [0, %each_], [%next, %like]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %said, label %look
look:
  %array_ = getelementptr ptr, ptr %operands, i64 %i
  %array = load ptr, ptr %array_
  %place = mul i64 %i, 4
  %operand = getelementptr i64, ptr %first, i64 %place
  %alike = call i1 @is_like(ptr %array, ptr %operand)
  br i1 %alike, label %like, label %no
like:
  %next = add i64 %i, 1
  br label %each
said:
  %right = call i1 @says(ptr %plan, ptr %args)
  ret i1 %right
no:
  ret i1 false
}

define internal ptr @find(ptr %table, ptr %args, i64 %given) {
  %from_ = getelementptr i64, ptr %table, i64 1
  %from = load i64, ptr %from_
  %count = sub i64 %given, %from
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %first, label %none
first:
  %operands = getelementptr ptr, ptr %args, i64 %from
  %array = load ptr, ptr %operands
  %class_ = getelementptr i8, ptr %array, i64 8
  %class = load i64, ptr %class_
  %is_array = icmp eq i64 %class, @ARRAY_TYPE@
  br i1 %is_array, label %shaped, label %none
shaped:
  %nd_ = getelementptr i8, ptr %array, i64 @nd@
  %nd = load i32, ptr %nd_
  %flat = icmp eq i32 %nd, 0
  br i1 %flat, label %none, label %hash
hash:
  %extents_ = getelementptr i8, ptr %array, i64 @extents@
  %extents = load ptr, ptr %extents_
  %extent = load i64, ptr %extents
  %mask = load i64, ptr %table
  %bucket = and i64 %extent, %mask
  %place = add i64 %bucket, @BUCKETS@
  %start_ = getelementptr ptr, ptr %table, i64 %place
  %start = load ptr, ptr %start_
  br label %each
each:
  %plan = phi ptr [%start, %hash], [%next, %other]
  %end = icmp eq ptr %plan, null
  br i1 %end, label %none, label %look
look:
  %fit = call i1 @fits(ptr %plan, ptr %args, ptr %operands, i64 %count)
  br i1 %fit, label %found, label %other
other:
  %next = load ptr, ptr %plan
  br label %each
found:
  ret ptr %plan
none:
  ret ptr null
}

; `busy` is no atomic: it is read and set with the GIL. Calls that come meanwhile go to the fallback.
define internal void @fill(ptr %plan, ptr %operands, ptr %result) {
  %lanes_ = getelementptr i64, ptr %plan, i64 @plan.lanes@
  %lanes = load i64, ptr %lanes_
  %lane_ = getelementptr ptr, ptr %plan, i64 @plan.lane@
  %lane0 = load ptr, ptr %lane_
  %slots_ = getelementptr ptr, ptr %plan, i64 @plan.slots@
  %slots = load ptr, ptr %slots_
  %count_ = getelementptr i64, ptr %plan, i64 @plan.operands@
  %count = load i64, ptr %count_
  br label %each_lane
each_lane:
  %l = phi i64 [0, %0], [%next_lane, %filled]
  %last = icmp eq i64 %l, %lanes
  br i1 %last, label %done, label %fill
fill:
  %words_ = getelementptr ptr, ptr %lane0, i64 %l
  %words = load ptr, ptr %words_
  br label %each
each:
  %i = phi i64 [0, %fill], [%next, %operand]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %filled, label %operand
operand:
  %array_ = getelementptr ptr, ptr %operands, i64 %i
  %array = load ptr, ptr %array_
  %data_ = getelementptr i8, ptr %array, i64 @data@
  %data = load ptr, ptr %data_
  %slot_ = getelementptr i64, ptr %slots, i64 %i
  %slot = load i64, ptr %slot_
  %word_ = getelementptr ptr, ptr %words, i64 %slot
  store ptr %data, ptr %word_
  %next = add i64 %i, 1
  br label %each
filled:
  %out_ = getelementptr i8, ptr %result, i64 @data@
  %out = load ptr, ptr %out_
  %out_slot_ = getelementptr i64, ptr %slots, i64 %count
  %out_slot = load i64, ptr %out_slot_
  %out_word_ = getelementptr ptr, ptr %words, i64 %out_slot
  store ptr %out, ptr %out_word_
  %next_lane = add i64 %l, 1
  br label %each_lane
done:
  ret void
}

define internal void @enter(ptr %plan) {
  %entries_ = getelementptr i64, ptr %plan, i64 @plan.entries@
  %entries = load i64, ptr %entries_
  %entry_ = getelementptr ptr, ptr %plan, i64 @plan.entry@
  %entry0 = load ptr, ptr %entry_
  %lane_ = getelementptr ptr, ptr %plan, i64 @plan.lane@
  %lane0 = load ptr, ptr %lane_
  %words = load ptr, ptr %lane0
  br label %each
each:
  %i = phi i64 [0, %0], [%next, %run]
  %end = icmp eq i64 %i, %entries
  br i1 %end, label %done, label %run
run:
  %place = mul i64 %i, 2
  %function_ = getelementptr ptr, ptr %entry0, i64 %place
  %function = load ptr, ptr %function_
  %times_ = getelementptr ptr, ptr %function_, i64 1
  %times = load i64, ptr %times_
  call void %function(ptr %words, i64 0, i64 %times)
  %next = add i64 %i, 1
  br label %each
done:
  ret void
}

define internal i1 @run(ptr %plan) {
  %team_ = getelementptr ptr, ptr %plan, i64 @plan.team@
  %team = load ptr, ptr %team_
  %none = icmp eq ptr %team, null
  br i1 %none, label %here, label %together
together:
  %answer = call ptr @PyObject_CallNoArgs@(ptr %team)
  %failed = icmp eq ptr %answer, null
  br i1 %failed, label %no, label %answered
answered:
  call void @Py_DecRef@(ptr %answer)
  br label %yes
here:
  %long_ = getelementptr i64, ptr %plan, i64 @plan.long@
  %takes_long = load i64, ptr %long_
  %keep = icmp eq i64 %takes_long, 0
  br i1 %keep, label %short, label %long
short:
  call void @enter(ptr %plan)
  br label %yes
long:
  %state = call ptr @PyEval_SaveThread@()
  call void @enter(ptr %plan)
  call void @PyEval_RestoreThread@(ptr %state)
  br label %yes
yes:
  ret i1 true
no:
  ret i1 false
}

define internal ptr @compute(ptr %plan, ptr %operands) {
  %type_ = getelementptr ptr, ptr %plan, i64 @plan.type@
  %type = load ptr, ptr %type_
  %nd_ = getelementptr i64, ptr %plan, i64 @plan.dimensions@
  %nd64 = load i64, ptr %nd_
  %nd = trunc i64 %nd64 to i32
  %extents_ = getelementptr ptr, ptr %plan, i64 @plan.extents@
  %extents = load ptr, ptr %extents_
  %strides_ = getelementptr ptr, ptr %plan, i64 @plan.strides@
  %strides = load ptr, ptr %strides_
  call void @Py_IncRef@(ptr %type)
  %result = call ptr @PyArray_NewFromDescr@(ptr inttoptr (i64 @ARRAY_TYPE@ to ptr), ptr %type, i32 %nd,
      ptr %extents, ptr %strides, ptr null, i32 0, ptr null)
  %lacking = icmp eq ptr %result, null
  br i1 %lacking, label %failed, label %start
start:
  %busy = getelementptr i64, ptr %plan, i64 @plan.busy@
  store i64 1, ptr %busy
  call void @fill(ptr %plan, ptr %operands, ptr %result)
  %good = call i1 @run(ptr %plan)
  store i64 0, ptr %busy
  br i1 %good, label %done, label %undo
undo:
  call void @Py_DecRef@(ptr %result)
  br label %failed
failed:
  ret ptr null
done:
  %flat = icmp eq i32 %nd, 0
  br i1 %flat, label %scalar, label %array
scalar:
  %number = call ptr @PyArray_Return@(ptr %result)
  ret ptr %number
array:
  ret ptr %result
}

define ptr @dispatch(ptr %self, ptr %args, i64 %given) {
  %table_ = getelementptr i8, ptr %self, i64 @data@
  %table = load ptr, ptr %table_
  %plan = call ptr @find(ptr %table, ptr %args, i64 %given)
  %unknown = icmp eq ptr %plan, null
  br i1 %unknown, label %refer, label %known
known:
  %hand_ = getelementptr ptr, ptr %plan, i64 @plan.hand@
  %hand = load ptr, ptr %hand_
  %ours = icmp eq ptr %hand, null
  br i1 %ours, label %kernel, label %hand_over
hand_over:
  %skip_ = getelementptr i64, ptr %plan, i64 @plan.skip@
  %skip = load i64, ptr %skip_
  %rest = getelementptr ptr, ptr %args, i64 %skip
  %left = sub i64 %given, %skip
  %theirs = call ptr @PyObject_Vectorcall@(ptr %hand, ptr %rest, i64 %left, ptr null)
  ret ptr %theirs
kernel:
  %busy_ = getelementptr i64, ptr %plan, i64 @plan.busy@
  %busy = load i64, ptr %busy_
  %free = icmp eq i64 %busy, 0
  br i1 %free, label %compute, label %refer
compute:
  %from_ = getelementptr i64, ptr %table, i64 1
  %from = load i64, ptr %from_
  %operands = getelementptr ptr, ptr %args, i64 %from
  %computed = call ptr @compute(ptr %plan, ptr %operands)
  ret ptr %computed
refer:
  %fallback_ = getelementptr ptr, ptr %table, i64 2
  %fallback = load ptr, ptr %fallback_
  %referred = call ptr @PyObject_Vectorcall@(ptr %fallback, ptr %args, i64 %given, ptr null)
  ret ptr %referred
}
