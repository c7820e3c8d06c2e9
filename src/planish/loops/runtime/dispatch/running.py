"""LLVM's text that runs a plan: it allocates the result; see `planish.loops.runtime.dispatch.code`."""

# `busy` is no atomic: it is read and set with the GIL. Calls that come meanwhile go to the fallback.
RUN = """
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
"""

DISPATCH = """
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
"""
