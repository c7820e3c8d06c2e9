; Functions of planish.network.library: they compute a network, step by step.
; Names between @ signs are replaced before the text is compiled.
;
; A step is a record of 64-bit words:
;
;     number of arguments, number of calls
;     for each argument: table of its base (0: none, the weights and the workspace; 1: inputs; 2: outputs),
;         index of the base in the table, offset in bytes
;     for each call: distance of the function from this word, iterations
;
; All calls of a step have the same arguments.

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
  %place = add i64 %words, 2
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

define internal void @compute(ptr %step, ptr %args) nounwind {
start:
  %arguments = load i64, ptr %step
  %calls_ = getelementptr i64, ptr %step, i64 1
  %calls = load i64, ptr %calls_
  %words = mul i64 %arguments, 3
  %place = add i64 %words, 2
  %first = getelementptr i64, ptr %step, i64 %place
  br label %each
each:
  %i = phi i64 [0, %start], [%next, %each]
  %pair = shl i64 %i, 1
  %call = getelementptr i64, ptr %first, i64 %pair
  %distance = load i64, ptr %call
  %function = getelementptr i8, ptr %call, i64 %distance
  %iterations_ = getelementptr i64, ptr %call, i64 1
  %iterations = load i64, ptr %iterations_
  call void %function(ptr %args, i64 0, i64 %iterations)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %calls
  br i1 %more, label %each, label %done
done:
  ret void
}

; A step that copies a tensor, of so many elements of 32 bits.
define hidden void @model_copy(ptr %args, i64 %begin, i64 %end) nounwind {
start:
  %source = load ptr, ptr %args
  %target_ = getelementptr ptr, ptr %args, i64 1
  %target = load ptr, ptr %target_
  %some = icmp slt i64 %begin, %end
  br i1 %some, label %each, label %done
each:
  %i = phi i64 [%begin, %start], [%next, %each]
  %from = getelementptr i32, ptr %source, i64 %i
  %to = getelementptr i32, ptr %target, i64 %i
  %element = load i32, ptr %from
  store i32 %element, ptr %to
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %each, label %done
done:
  ret void
}

define i32 @model_run_layers(ptr %inputs, ptr %outputs, ptr %workspace, i32 %first, i32 %behind) nounwind {
start:
  %args = alloca [@ARGUMENTS@ x ptr]
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
  br label %each
each:
  %i = phi i32 [%first, %ready], [%next, %step]
  %more = icmp slt i32 %i, %behind
  br i1 %more, label %step, label %ok
step:
  %word_ = getelementptr i64, ptr @model_index, i32 %i
  %word = load i64, ptr %word_
  %record = getelementptr i64, ptr @model_steps, i64 %word
  call void @resolve(ptr %record, ptr %tables, ptr %args)
  call void @compute(ptr %record, ptr %args)
  %next = add i32 %i, 1
  br label %each
ok:
  ret i32 0
no_instructions:
  ret i32 1
no_memory:
  ret i32 2
misaligned:
  ret i32 3
}

define i32 @model_run(ptr %inputs, ptr %outputs, ptr %workspace) nounwind {
  %code = call i32 @model_run_layers(ptr %inputs, ptr %outputs, ptr %workspace, i32 0, i32 @STEPS@)
  ret i32 %code
}
