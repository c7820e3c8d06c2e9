; Functions of planish.network.library: they compute a network, step by step.
; Names between @ signs are replaced before the text is compiled.
;
; A step is a record of 64-bit words:
;
;     number of arguments, number of calls, bytes between the last arguments of two threads
;     for each argument: table of its base (0: none, the weights and the workspace; 1: inputs; 2: outputs),
;         index of the base in the table, offset in bytes
;     for each call: distance of the function from this word, iterations, whether threads share them
;
; All calls of a step have the same arguments, except that each thread has a last one, its workspace, of its own.
; What `assemble`, `share` and `disband` do is in threads.ll.

@model_steps = external hidden constant i64
@model_index = external hidden constant i64
@".weights" = external hidden constant i8

define internal void @resolve(ptr %step, ptr %tables, ptr %args) nounwind {
start:
  %count = load i64, ptr %step
  br label %each
each:
  %i = phi i64 [0, %start], [%next, %each]
  %words = mul i64 %i, 3
  %place = add i64 %words, 3
  %record = getelementptr i64, ptr %step, i64 %place
  %table = load i64, ptr %record
  %index_ = getelementptr i64, ptr %record, i64 1
  %index = load i64, ptr %index_
  %offset_ = getelementptr i64, ptr %record, i64 2
  %offset = load i64, ptr %offset_
  %bases_ = getelementptr ptr, ptr %tables, i64 %table
  %bases = load ptr, ptr %bases_
  %base_ = getelementptr ptr, ptr %bases, i64 %index
  %base = load ptr, ptr %base_
  %address = getelementptr i8, ptr %base, i64 %offset
  %slot = getelementptr ptr, ptr %args, i64 %i
  store ptr %address, ptr %slot
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %each, label %done
done:
  ret void
}

; Sets the arguments of the threads but the first.
define internal void @spread(ptr %step, ptr %lane_args) nounwind {
start:
  %args = load ptr, ptr %lane_args
  %count = load i64, ptr %step
  %stride_ = getelementptr i64, ptr %step, i64 2
  %stride = load i64, ptr %stride_
  %last = sub i64 %count, 1
  br label %lanes
lanes:
  %lane = phi i64 [1, %start], [%next_lane, %own]
  %is_lane = icmp ult i64 %lane, @LANES@
  br i1 %is_lane, label %copy, label %done
copy:
  %target_ = getelementptr ptr, ptr %lane_args, i64 %lane
  %target = load ptr, ptr %target_
  br label %each
each:
  %i = phi i64 [0, %copy], [%next, %each]
  %from = getelementptr ptr, ptr %args, i64 %i
  %to = getelementptr ptr, ptr %target, i64 %i
  %argument = load ptr, ptr %from
  store ptr %argument, ptr %to
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %each, label %own
own:
  %offset = mul i64 %stride, %lane
  %own_ = getelementptr ptr, ptr %target, i64 %last
  %first_space = load ptr, ptr %own_
  %space = getelementptr i8, ptr %first_space, i64 %offset
  store ptr %space, ptr %own_
  %next_lane = add i64 %lane, 1
  br label %lanes
done:
  ret void
}

define internal void @compute(ptr %step, ptr %lane_args, i1 %leads) nounwind {
start:
  %args = load ptr, ptr %lane_args
  %arguments = load i64, ptr %step
  %calls_ = getelementptr i64, ptr %step, i64 1
  %calls = load i64, ptr %calls_
  %words = mul i64 %arguments, 3
  %place = add i64 %words, 3
  %first = getelementptr i64, ptr %step, i64 %place
  br label %each
each:
  %i = phi i64 [0, %start], [%next, %done]
  %triple = mul i64 %i, 3
  %call = getelementptr i64, ptr %first, i64 %triple
  %distance = load i64, ptr %call
  %function = getelementptr i8, ptr %call, i64 %distance
  %iterations_ = getelementptr i64, ptr %call, i64 1
  %iterations = load i64, ptr %iterations_
  %flag_ = getelementptr i64, ptr %call, i64 2
  %flag = load i64, ptr %flag_
  %is_parallel = icmp ne i64 %flag, 0
  %is_shared = and i1 %is_parallel, %leads
  br i1 %is_shared, label %share, label %alone
share:
  call void @share(ptr %function, i64 %iterations, ptr %lane_args)
  br label %done
alone:
  call void %function(ptr %args, i64 0, i64 %iterations)
  br label %done
done:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %calls
  br i1 %more, label %each, label %end
end:
  ret void
}

; A step that copies a tensor, of so many bytes: words of 64 bits, and the bytes that are left.
define hidden void @model_copy(ptr %args, i64 %begin, i64 %end) nounwind {
start:
  %source = load ptr, ptr %args
  %target_ = getelementptr ptr, ptr %args, i64 1
  %target = load ptr, ptr %target_
  %words = lshr i64 %end, 3
  %whole = shl i64 %words, 3
  br label %look
look:
  %i = phi i64 [0, %start], [%next, %word]
  %more = icmp ult i64 %i, %words
  br i1 %more, label %word, label %rest
word:
  %from = getelementptr i64, ptr %source, i64 %i
  %to = getelementptr i64, ptr %target, i64 %i
  %element = load i64, ptr %from, align 1
  store i64 %element, ptr %to, align 1
  %next = add i64 %i, 1
  br label %look
rest:
  %k = phi i64 [%whole, %look], [%after, %byte]
  %left = icmp ult i64 %k, %end
  br i1 %left, label %byte, label %done
byte:
  %byte_from = getelementptr i8, ptr %source, i64 %k
  %byte_to = getelementptr i8, ptr %target, i64 %k
  %value = load i8, ptr %byte_from
  store i8 %value, ptr %byte_to
  %after = add i64 %k, 1
  br label %rest
done:
  ret void
}

define i32 @model_run_layers(ptr %inputs, ptr %outputs, ptr %workspace, i32 %first, i32 %after) nounwind {
start:
  %args = alloca [@LANES@ x [@ARGUMENTS@ x ptr]]
  %lane_args = alloca [@LANES@ x ptr]
  %own = alloca [3 x ptr]
  %tables = alloca [3 x ptr]
  %able = call i1 @has_instructions()
  br i1 %able, label %memory, label %no_instructions
memory:
  %no_inputs = icmp eq ptr %inputs, null
  %no_outputs = icmp eq ptr %outputs, null
  %no_lists = or i1 %no_inputs, %no_outputs
  %no_space = icmp eq ptr %workspace, null
  %no_workspace = and i1 %no_space, @NEEDS_WORKSPACE@
  %lacks = or i1 %no_lists, %no_workspace
  br i1 %lacks, label %no_memory, label %alignment
alignment:
  %address = ptrtoint ptr %workspace to i64
  %rest = and i64 %address, 63
  %is_aligned = icmp eq i64 %rest, 0
  br i1 %is_aligned, label %ready, label %misaligned
ready:
  %own1 = getelementptr ptr, ptr %own, i64 1
  %own2 = getelementptr ptr, ptr %own, i64 2
  store ptr null, ptr %own
  store ptr @".weights", ptr %own1
  store ptr %workspace, ptr %own2
  %tables1 = getelementptr ptr, ptr %tables, i64 1
  %tables2 = getelementptr ptr, ptr %tables, i64 2
  store ptr %own, ptr %tables
  store ptr %inputs, ptr %tables1
  store ptr %outputs, ptr %tables2
  br label %lanes
lanes:
  %lane = phi i64 [0, %ready], [%next_lane, %lanes]
  %lane_start = getelementptr [@ARGUMENTS@ x ptr], ptr %args, i64 %lane
  %lane_ = getelementptr ptr, ptr %lane_args, i64 %lane
  store ptr %lane_start, ptr %lane_
  %next_lane = add i64 %lane, 1
  %more_lanes = icmp ult i64 %next_lane, @LANES@
  br i1 %more_lanes, label %lanes, label %team
team:
  %leads = call i1 @assemble()
  br label %each
each:
  %i = phi i32 [%first, %team], [%next, %computed]
  %more = icmp slt i32 %i, %after
  br i1 %more, label %step, label %over
step:
  %word_ = getelementptr i64, ptr @model_index, i32 %i
  %word = load i64, ptr %word_
  %record = getelementptr i64, ptr @model_steps, i64 %word
  call void @resolve(ptr %record, ptr %tables, ptr %args)
  br i1 %leads, label %spread, label %computed
spread:
  call void @spread(ptr %record, ptr %lane_args)
  br label %computed
computed:
  call void @compute(ptr %record, ptr %lane_args, i1 %leads)
  %next = add i32 %i, 1
  br label %each
over:
  br i1 %leads, label %disband, label %ok
disband:
  call void @disband()
  br label %ok
ok:
  ret i32 0
no_instructions:
  ret i32 @NO_INSTRUCTIONS@
no_memory:
  ret i32 @NO_MEMORY@
misaligned:
  ret i32 @MISALIGNED@
}

define i32 @model_run(ptr %inputs, ptr %outputs, ptr %workspace) nounwind {
  %code = call i32 @model_run_layers(ptr %inputs, ptr %outputs, ptr %workspace, i32 0, i32 @STEPS@)
  ret i32 %code
}
