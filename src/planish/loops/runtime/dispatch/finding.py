"""LLVM's text that finds the plan for the arguments of a call; see `planish.loops.runtime.dispatch.code`."""

# Buckets are by the first operand's first extent: an array without dimensions has none, and is not found.
# `says`: a literal in a program is one object, so mostly the addresses decide.
FIND = """
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
"""
